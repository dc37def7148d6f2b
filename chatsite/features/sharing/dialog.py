"""The dialog in which an owner makes links to a conversation, copies and ends them."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.accounts.access import conversation_view
from chatsite.features.attachments.images.files import has_any_image
from chatsite.pages.views import read_number
from chatsite.plugins import form_fields
from memory.models import Conversation

from . import services
from .models import Share

# Days that a link can be open for; none is open without an end.
ENDS = {
    1: gettext_lazy("in a day"),
    7: gettext_lazy("in a week"),
    30: gettext_lazy("in 30 days"),
    365: gettext_lazy("in a year"),
}


class ShareForm(forms.Form):
    """The contents and the duration of a link."""

    last_seq = forms.IntegerField(min_value=1, max_value=10**9, required=False)
    with_view = forms.BooleanField(required=False)
    with_images = forms.BooleanField(required=False)
    without_rules = forms.BooleanField(required=False)
    days = forms.TypedChoiceField(
        choices=[*ENDS.items()],
        coerce=int,
        empty_value=services.USUAL_DAYS,
        required=False,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, auto_id="share-%s", label_suffix="", **options)
        self.fields |= {name: make() for name, make in form_fields["share"].items()}

    @property
    def added(self) -> list[forms.BoundField]:
        """The fields of apps: more of what the model saw."""
        return [self[name] for name in form_fields["share"]]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        named = {name: values.pop(name, "") for name in form_fields["share"]}
        chosen = {name: value for name, value in named.items() if value}
        if chosen:
            values["with_view"] = True
        return {**values, "choices": chosen}


@conversation_view("GET")
def show_dialog(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    _check_links_are_on()
    wanted = read_number(request, "at")
    return _render_dialog(request, conversation, wanted=wanted)


@conversation_view("POST")
def make_link(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    _check_links_are_on()
    form = ShareForm(request.POST)
    if not form.is_valid():
        refusal = _("This link can't be made.")
        return _render_dialog(request, conversation, error=refusal)
    try:
        made = services.create_share(conversation, **form.cleaned_data)
    except services.ShareError as error:
        wanted = form.cleaned_data["last_seq"]
        return _render_dialog(request, conversation, wanted=wanted, error=str(error))
    return _render_dialog(request, conversation, made=made)


@conversation_view("POST")
def revoke_link(
    request: HttpRequest, conversation: Conversation, pk: int
) -> HttpResponse:
    """Also while the site has no links: they may come back."""
    services.revoke_share(conversation, pk)
    if request.htmx:
        return _render_dialog(request, conversation)
    return redirect(f"{reverse('account')}#shares")


def _address_of(share: Share) -> str:
    """Return the address; with what the model saw it opens as the replay."""
    address = reverse("shared-page", args=[share.token])
    return f"{address}?replay" if share.with_view else address


def _check_links_are_on() -> None:
    if not settings.SHARE_LINKS:
        raise Http404


def _render_dialog(
    request: HttpRequest,
    conversation: Conversation,
    *,
    wanted: int | None = None,
    made: Share | None = None,
    error: str = "",
) -> HttpResponse:
    """`wanted`: the last message that a new link is to show; None = the newest."""
    values: dict[str, Any] = {
        "conversation": conversation,
        "has_images": has_any_image(conversation),
        "newest": services.newest_to_share(conversation, wanted),
        "is_part": wanted is not None,
        "ends": ENDS.items(),
        "usual": services.USUAL_DAYS,
        "links": [
            (row, request.build_absolute_uri(_address_of(row)))
            for row in services.only_open(conversation.shares.order_by("-pk"))
        ],
        "ended": services.list_revoked_by_staff(conversation.shares),
        "made": made,
        "error": error,
        "form": ShareForm(),
    }
    return render(request, "sharing/_dialog.html", values)
