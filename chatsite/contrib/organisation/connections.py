"""The providers on the pages: log-in buttons, and connections on the account page."""

from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from chatsite.accounts.access import private_page
from chatsite.accounts.forms import PasswordForm

from . import account_rechecks
from .configuration import SamlProvider
from .models import Membership
from .oidc import lead_to_provider
from .tokens import find_provider


def draw_buttons(request: HttpRequest) -> str:
    values = {
        "providers": settings.SIGNIN_PROVIDERS.values(),
        "next": request.GET.get("next", ""),
    }
    return render_to_string("organisation/_providers.html", values, request)


def draw_connections(request: HttpRequest) -> str:
    rows = SocialAccount.objects.filter(user=request.user.pk)
    connected = set(rows.values_list("provider", flat=True))
    values = {
        "connections": [
            {
                "provider": provider,
                "is_connected": provider.id in connected,
                "form": PasswordForm(request, prefix=provider.id),
            }
            for provider in settings.SIGNIN_PROVIDERS.values()
        ],
        "has_password": request.user.has_usable_password(),
    }
    return render_to_string("organisation/_connections.html", values, request)


def list_connections(user: Any) -> list[dict[str, Any]]:
    """Return the accounts at providers that the user has connected, as data."""
    rows = SocialAccount.objects.filter(user=user).order_by("pk")
    return list(rows.values("provider", "uid", "extra_data", "date_joined"))


def _ask_password(request: HttpRequest, provider_id: str) -> HttpResponse | None:
    """Return an error page, or None if the password is correct.

    A session alone must not connect another account to this one.
    """
    provider = find_provider(provider_id)
    if provider is None or not request.user.has_usable_password():
        raise Http404
    form = PasswordForm(request, request.POST, prefix=provider_id)
    if form.is_valid():
        return None
    values = {"form": form, "provider": provider}
    return render(request, "organisation/connect.html", values, status=422)


@private_page("POST")
def connect_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    refused = _ask_password(request, provider_id)
    if not refused and isinstance(find_provider(provider_id), SamlProvider):
        from .saml.login import lead_to_saml  # loaded only where a provider speaks SAML

        return lead_to_saml(request, provider_id, "connect")
    return refused or lead_to_provider(request, provider_id, "connect")


@private_page("POST")
def disconnect_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    if refused := _ask_password(request, provider_id):
        return refused
    SocialAccount.objects.filter(user=request.user, provider=provider_id).delete()
    account_rechecks.forget_tokens(
        Membership.objects.filter(user=request.user, provider=provider_id)
    )
    messages.success(request, _("Disconnected."))
    return redirect("account")
