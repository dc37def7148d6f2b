"""The page *Settings* of the admin: the site's settings, and whether they work.

It changes nothing and shows no secret; it is there for superusers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatsite.environment import Setting
from chatsite.llm import providers
from chatsite.llm.provider_file import Prices
from chatsite.settings import env

SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class SettingRow:
    name: str
    value: str
    source: str
    default: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of PROVIDERS_FILE; `key` says only that there is one."""

    provider: str
    host: str
    key: str
    model: str
    window: str
    prices: str
    groups: str


@require_safe
@never_cache
def show_settings(request: HttpRequest) -> HttpResponse:
    if not request.user.is_superuser:
        raise PermissionDenied
    # Asking the database and Redis takes time: only on demand.
    is_asked = request.GET.get("checks") == "1"
    context = {
        **admin.site.each_context(request),
        "title": _("Settings"),
        "rows": list(list_setting_rows()),
        "models": list(list_model_rows()),
        "findings": _list_findings() if is_asked else [],
    }
    return TemplateResponse(request, "admin/ops/settings.html", context)


def _list_findings() -> list[Any]:
    # Here, because it brings the client of Redis.
    from .management.commands import doctor

    return doctor.list_findings(doctor.list_checks())


def list_setting_rows() -> Iterator[SettingRow]:
    sources = {"file": str(env.file), "environment": _("environment"), "": ""}
    for name, setting in env.settings.items():
        source = env.find_source(name)
        yield SettingRow(
            name=name,
            value=_write_setting(setting),
            source=sources[source],
            default="" if setting.is_secret else _write_value(setting.default),
            is_changed=setting.value != setting.default,
        )


def list_model_rows() -> Iterator[ModelRow]:
    """Yield the models of PROVIDERS_FILE, each with its provider."""
    for provider in settings.PROVIDERS:
        host = providers.find_provider_host(provider)
        for model in provider.models:
            yield ModelRow(
                provider=provider.name,
                host=host,
                key=_("set") if provider.secret else "",
                model=model.name,
                window=f"{providers.context_window(model.name):,}",
                prices=_write_prices(model.prices),
                groups=", ".join(model.groups) or _("everyone"),
            )


def _write_prices(prices: Prices) -> str:
    found = (prices.input, prices.cached, prices.output)
    return " / ".join("–" if each is None else f"{each:g}" for each in found)


def _write_setting(setting: Setting) -> str:
    if setting.is_secret:
        return _("set") if setting.value else ""
    return _write_value(setting.value)


def _write_value(value: Any) -> str:
    """Return a value as it is written in the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        value = ",".join(value)
    text = (
        f"{value:.15g}"
        if isinstance(value, float)
        else str("" if value is None else value)
    )
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
