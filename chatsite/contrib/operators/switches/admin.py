"""Switches in the admin.

Adding a row switches off, and a row that is still in force has a form that switches on
again.
"""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.features.tools import registry
from chatsite.llm import providers
from chatsite.review import access_log
from chatsite.review.readonly import ShortListAdmin
from chatsite.review.rights import rights_of
from chatsite.turns import model_access

from . import active_switches
from .models import MAX_REASON_CHARS, SwitchedOff, fits_names

SWITCH = "switches.switch"
# What can be switched off, by the word that is kept for its kind: what one is called,
# and the names of those that are there now.
KINDS = {
    model_access.KIND: (_("model"), providers.list_models),
    registry.KIND: (_("tool"), registry.known),
}


class SuggestionInput(forms.TextInput):
    """A field of text beside a list of names to choose from."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__({"list": "names", "autocomplete": "off"})
        self.names = names

    def render(self, *args: Any, **kwargs: Any) -> str:
        options = ((name,) for name in self.names)
        listed = format_html_join("", '<option value="{}">', options)
        return super().render(*args, **kwargs) + format_html_join(
            "", '<datalist id="names">{}</datalist>', [(listed,)]
        )


class OffForm(forms.ModelForm):
    kind = forms.ChoiceField(label=capfirst(_("what")))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [
            (k, label) for k, (label, _list) in KINDS.items()
        ]
        names = (name for _label, list_them in KINDS.values() for name in list_them())
        self.fields["name"].widget = SuggestionInput(dict.fromkeys(names))

    def clean(self) -> None:
        # A form without a column leaves out the constraints that name it.
        chosen = {name: self.cleaned_data.get(name) for name in ("kind", "name")}
        if SwitchedOff.objects.filter(**chosen, on_at=None).exists():
            raise forms.ValidationError(_("It is switched off already."))


class OnForm(forms.ModelForm):
    on_reason = forms.CharField(
        label=capfirst(_("why it is on again")), max_length=MAX_REASON_CHARS
    )


@admin.register(SwitchedOff)
class SwitchedOffAdmin(ShortListAdmin):
    list_display = (
        *("name", "shown_kind", "is_in_force", "created_at", "username", "reason"),
        *("on_at", "on_username", "on_reason"),
    )
    list_per_page = 50
    sortable_by = ()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights_of(request.user).metadata or self.has_add_permission(request)

    has_module_permission = has_view_permission

    def has_add_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return user.is_active and user.is_staff and user.has_perm(SWITCH)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_open = obj is None or obj.on_at is None
        return is_open and self.has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_form(
        self, request: HttpRequest, obj: Any = None, **kwargs: Any
    ) -> type[forms.ModelForm]:
        form = OffForm if obj is None else OnForm
        return super().get_form(request, obj, form=form, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ("kind", "name", "reason")
        off = ("shown_kind", "name", "reason", ("created_at", "username"))
        if obj.on_at:
            return (*off, "on_reason", ("on_at", "on_username"))
        return (*off, "on_reason")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        off = ("shown_kind", "name", "reason", "created_at", "username")
        return (*off, "on_at", "on_username") if obj else ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if row is None:
            context["title"] = gettext("Switch off")
        elif self.has_change_permission(request, row):
            context["title"] = gettext("Switch on again")
        context["show_save_and_continue"] = context["show_save_and_add_another"] = False
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: SwitchedOff, form: Any, change: bool
    ) -> None:
        name = request.user.get_username()
        if change:
            rows = SwitchedOff.objects.filter(pk=obj.pk, on_at=None)
            on = {"on_at": Now(), "on_username": name, "on_reason": obj.on_reason}
            if not rows.update(**on):
                return
        else:
            obj.user, obj.username = request.user, name
            obj.save()
            self._warn_of_unknown(request, obj)
        target = f"{'on' if change else 'off'} {obj.kind} {obj.name}"
        access_log.record_access(request, "switch", None, target)
        # The other processes look within seconds.
        transaction.on_commit(active_switches.read_switches)

    def _warn_of_unknown(self, request: HttpRequest, row: SwitchedOff) -> None:
        _label, list_names = KINDS[row.kind]
        if not any(fits_names(row.name, each) for each in list_names()):
            text = gettext(
                "This site has nothing with that name. The name was switched off "
                "anyway: check its spelling."
            )
            messages.warning(request, text)

    @admin.display(description=_("what"))
    def shown_kind(self, row: SwitchedOff) -> Any:
        return KINDS[row.kind][0] if row.kind in KINDS else row.kind

    @admin.display(description=_("off"), boolean=True)
    def is_in_force(self, row: SwitchedOff) -> bool:
        return row.on_at is None
