"""Template tags of the review app, for the admin's pages and the account page.

The account page lists the conversations of a user that staff have read.
"""

from typing import Any

from django import template
from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy

from chatsite.llm import providers
from chatsite.pages.forms import preset_name
from chatsite.release import find_version
from memory.models import Conversation, Summary

from .. import access_log, labels, redaction
from ..actions.forms import RebuildForm, ReviewForm
from ..actions.services import State, is_outdated
from ..dashboard import Dashboard, build_dashboard
from ..rights import rights_of

PAGE = 20
# What staff do, and the table where they begin.
TASKS = {
    "QueueItem": gettext_lazy("Review queue"),
    "Conversation": gettext_lazy("Conversations"),
    "ModelCall": gettext_lazy("Costs"),
    "User": gettext_lazy("People"),
}

register = template.Library()
register.simple_tag(rights_of, name="rights_of")
register.simple_tag(find_version, name="site_version")
register.filter("error_code", redaction.show_error_code)
register.filter("summary_author", labels.name_author)
register.filter("summary_because", labels.describe_trigger)
register.filter("summary_compacted", labels.count_compacted)
register.filter("summary_flags", labels.list_flags)
register.filter("summary_span", labels.format_span)
register.filter("summary_status", labels.name_status)
register.filter("preset", preset_name)
register.filter("summary_tokens", labels.format_tokens)


@register.simple_tag(takes_context=True)
def site_dashboard(context: dict[str, Any]) -> Dashboard | None:
    """Return the dashboard; None for staff who may not see numbers."""
    request = context["request"]
    if not rights_of(request.user).metadata:
        return None
    return build_dashboard(request.GET.get("days", ""))


@register.simple_tag(takes_context=True)
def staff_tasks(context: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the addresses and names of the tasks that this user has rights for."""
    tables = {
        table["object_name"]: table["admin_url"]
        for app in context["app_list"]
        for table in app["models"]
    }
    found = [(tables[name], word) for name, word in TASKS.items() if tables.get(name)]
    if context["request"].user.is_superuser:
        found.append((reverse("site-settings"), gettext_lazy("Settings")))
    return found


@register.simple_tag(takes_context=True)
def model_shutdowns(context: dict[str, Any]) -> list[str]:
    """Return a sentence for each model that ends, for those who can name another."""
    if not context["request"].user.is_superuser:
        return []
    return [providers.explain_shutdown(*each) for each in providers.list_shutdowns()]


@register.simple_tag
def actions_of(
    conversation: Conversation, version: Summary | int | None = None
) -> dict[str, Any]:
    """`version` is one that may come back into force: a summary, or its number."""
    state = State.of_conversation(conversation)
    review = conversation.reviews.first()
    if isinstance(version, int):
        version = conversation.summaries.filter(version=version).first()
    is_old = bool(version) and version.status == Summary.Status.SUPERSEDED
    return {
        "seen": state,
        "review": review,
        "is_outdated": bool(review) and is_outdated(review, state),
        "restorable": version if is_old else None,
        "rebuild_form": RebuildForm(auto_id="rebuild_%s"),
        "review_form": ReviewForm(auto_id="review_%s"),
    }


@register.inclusion_tag("review/_accesses.html", takes_context=True)
def show_accesses(context: dict[str, Any]) -> dict[str, Any]:
    """Show staff accesses to the user's conversations, if the settings allow it."""
    request: HttpRequest = context["request"]
    shown = settings.STAFF_ACCESS_SHOWN
    if shown == "no":
        return {"is_shown": False}
    looks = access_log.list_accesses(request.user)
    page = Paginator(looks, PAGE).get_page(request.GET.get("accesses"))
    return {
        "is_shown": True,
        "with_names": shown == "names",
        "page": page,
        "rows": access_log.read_looks(request.user, page.object_list),
    }
