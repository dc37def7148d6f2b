"""Pages of API keys: made and shown once, and revoked."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from chatsite.accounts.access import conversation_view, private_page
from memory.models import Conversation

from . import keys
from .addresses import base_address, mcp_address
from .forms import ApiKeyForm


@private_page("GET", "POST")
def make_api_key(request: HttpRequest) -> HttpResponse:
    """Show the form for a new key; the only page that ever shows the key."""
    form = ApiKeyForm(request.POST or None)
    if form.is_valid():
        values = dict(form.cleaned_data)
        scopes = keys.SCOPES if values.pop("may_read") else (keys.SEND,)
        try:
            row, key = keys.create_api_key(request.user, scopes=scopes, **values)
        except keys.KeyLimitError as error:
            form.add_error(None, str(error))
        else:
            values = {"key": key, "row": row, "base": base_address(request)}
            values["mcp"] = mcp_address(request) if keys.READ in scopes else ""
            return render(request, "endpoint/made.html", values)
    values = {"form": form}
    status = 422 if form.is_bound else 200
    return render(request, "endpoint/make.html", values, status=status)


@conversation_view("GET")
def show_continuing(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Show how a coding client goes on with the conversation, through this site."""
    values = {
        "conversation": conversation,
        "base": base_address(request),
        "site": request.build_absolute_uri("/").rstrip("/"),
        # As the download is named.
        "file": f"conversation-{str(conversation.uuid)[:8]}.md",
    }
    return render(request, "endpoint/continue.html", values)


@private_page("POST")
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    if not keys.revoke_api_key(request.user, pk):
        raise Http404
    text = _("The key was revoked. Requests that use it are refused from now on.")
    messages.success(request, text)
    return redirect("account")
