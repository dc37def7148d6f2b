"""Parts of pages that are rendered once for all tabs and reloads.

These are finished turns and summaries, rows of the list, messages of the right pane,
and forms that are not filled in. Each is cached by everything that it shows, so a part
that has changed is another part.
"""

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Any

from django.forms import Form, MultipleChoiceField
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from chatsite import slots
from chatsite.languages import of_text
from memory.models import Conversation, Summary

from .html_cache import Cache
from .presenters.context_pane import ContextSection, SeenMessage
from .presenters.transcript_pane import Divider, TurnView

# Enough for the latest page of some hundred conversations.
CACHE_BYTES = 32 * 1024 * 1024
DIALOG_BUTTON = (
    '<button type="button" class="item" hx-get="{}" hx-target="#dialog-body"'
    ' hx-swap="innerHTML">{}</button>'
)

SWITCH = (
    '<button type="button" class="switch" role="switch" data-switch="{}"'
    ' aria-checked="{}" aria-label="{}"></button>'
)

SHOWN_OF_SUMMARY = attrgetter(
    *("version", "level", "first_seq", "last_seq", "text", "model"),
    *("is_trimmed", "tokens_before", "tokens_after", "has_older"),
)

cache = Cache(CACHE_BYTES)


def render_turn(conversation: Conversation, view: TurnView) -> SafeString:
    """Render one turn of the transcript.

    A running one changes too often to be cached.
    """
    template, values = "chat/_turn.html", {"conversation": conversation, "turn": view}
    if view.partial is not None:
        return render_to_string(template, values)
    return _render_once(template, values, conversation.uuid, view.id, view.digest)


def render_status(message: str) -> str:
    """Render the sentence for screen readers; an empty one leaves the line as it is."""
    if not message:
        return ""
    return render_to_string("chat/_status.html", {"message": message})


def render_row(
    context: Mapping[str, Any], listed: Conversation, opened: object
) -> SafeString:
    """Render one conversation of the list: a link, or a box to choose it.

    The link keeps the chosen filters. `names` are the row's marks of the filters.
    """
    values = {
        "is_open": str(listed.uuid) == str(opened),
        "is_marked": bool(context["query"] and listed.archived_at),
        "marks": tuple(slots.draw_each("row.mark", conversation=listed)),
        "names": tuple(context["row_marks"].get(listed.pk, ())),
        "chosen": context["chosen"],
        "selecting": context["selecting"],
    }
    shown = (listed.uuid, listed.title, listed.updated_at, *values.values())
    values["row"] = listed
    return _render_once("chat/_conversation_row.html", values, *shown)


def render_seen_message(message: SeenMessage) -> SafeString:
    """One message that the model sees, in the right pane."""
    values = {"message": message, "language": of_text(message.text)}
    shown = (message.seq, message.role, message.text, message.calls, message.shortened)
    shown = (*shown, message.images, message.can_switch, message.is_off)
    return _render_once("chat/_context_message.html", values, *shown)


def render_glances(section: ContextSection) -> SafeString:
    """Render the beginnings of the texts of a closed sheet."""
    glances = tuple(section.glances)
    return _render_once("chat/_context_glances.html", {"glances": glances}, glances)


def render_divider(conversation: Conversation, line: Divider) -> SafeString:
    """Render the line in the transcript where the messages of a summary end."""
    values = {"conversation": conversation, "divider": line}
    shown = (conversation.uuid, line.covered, *_list_shown(line.summary))
    return _render_once("chat/_divider.html", values, *shown)


def render_summary_block(
    conversation: Conversation, summary: Summary, section: ContextSection
) -> SafeString:
    """Render a summary that the model sees, in the right pane."""
    values = {
        "is_past": not section.can_switch,
        "is_off": f"summary-{summary.version}" in section.off,
    }
    shown = (conversation.uuid, *values.values(), *_list_shown(summary))
    values |= {"conversation": conversation, "summary": summary}
    return _render_once("chat/_context_summary.html", values, *shown)


def draw_dialog_button(url: str, text: object) -> SafeString:
    """Render an item of a menu that opens this page in the dialog."""
    return format_html(DIALOG_BUTTON, url, text)


def render_switch(key: str, what: object, *, is_off: bool) -> SafeString:
    """Render the switch of a part of the next request; context.js sends it."""
    label = _("Send to the model: %(what)s") % {"what": what}
    return format_html(SWITCH, key, "false" if is_off else "true", label)


def render_form_fields(form: Form) -> SafeString:
    """Render the fields of a form; a sent one shows its errors, and isn't cached."""
    template = getattr(form, "fields_template", "_form_fields.html")
    values = {"form": form}
    if form.is_bound:
        return render_to_string(template, values)
    # Tools come and go with their servers.
    fields = form.fields.values()
    several = [
        (f.choices, f.initial) for f in fields if isinstance(f, MultipleChoiceField)
    ]
    shown = (type(form).__name__, repr(form.initial), repr(several))
    return _render_once(template, values, *shown)


def _list_shown(summary: Summary) -> tuple[Hashable, ...]:
    """Return what the templates show of a summary."""
    return (*SHOWN_OF_SUMMARY(summary), repr(summary.flags))


def _render_once(
    template: str, values: dict[str, object], *shown: Hashable
) -> SafeString:
    """Render the template with these values, of which it shows `shown`."""
    return render_once(cache, template, lambda: values, *shown)


def render_once(
    kept: Cache, template: str, read: Callable[[], dict[str, object]], *shown: Hashable
) -> SafeString:
    """Render the template with the values of `read`, of which it shows `shown`.

    They are read only if the result is not cached.
    """
    key = (template, get_language(), timezone.get_current_timezone_name(), *shown)
    return kept.get_or_make(key, lambda: render_to_string(template, read()))
