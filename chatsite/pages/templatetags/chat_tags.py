"""Filters of the pages: safe HTML of a text, and numbers as people write them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from chatsite import languages, plugins, slots
from chatsite.features.tools import registry
from chatsite.features.tools.cards.tool_cards import ToolCard
from chatsite.llm import pricing, providers
from chatsite.protocol import errors
from chatsite.staticfiles import BUNDLES, list_parts
from memory import transcript
from memory.engine.summaries.dropped import DroppedCount, DroppedDetail
from memory.models import Message, Summary
from memory.ranges import Ranges

from .. import parts
from ..markdown import render_markdown
from ..presenters.transcript_pane import ShownMessage, TurnView

register = template.Library()
register.simple_tag(parts.render_turn, name="turn")
register.simple_tag(parts.render_divider, name="divider")
register.simple_tag(parts.render_row, takes_context=True, name="conversation_row")
register.simple_tag(parts.render_summary_block, name="summary_block")
register.simple_tag(parts.render_seen_message, name="seen_message")
register.simple_tag(parts.render_glances, name="glances")
register.simple_tag(parts.render_switch, name="switch")
register.simple_tag(parts.render_form_fields, name="form_fields")
# Between a translated sentence and what follows it on its line.
register.simple_tag(languages.find_sentence_space, name="space")
# For the attribute `lang`; "" = it is not known.
register.filter("language", languages.of_text)
register.filter("model_label", providers.name_model)
register.filter("dollars", pricing.format_dollars)
register.filter("site_name", plugins.name_source)
register.filter("written_elsewhere", plugins.find_write_refusal)
register.simple_tag(plugins.find_write_refusal, name="write_refusal")
register.filter("why_not_compacted", errors.explain_compaction)

# A user's text that is longer is folded to about 12 lines (transcript.css).
FOLD_LINES, FOLD_CHARS = 16, 2_000
# Pages that show themselves again when a form on them is wrong.
FORMS = ("login", "signup", "account", "password-change")
# What is loaded when a part of the page, or what a script is for, is first used.
FIRST_USE = {
    "list menus": ("css/menus.css", "css/list-actions.css", "js/list-actions.js"),
    "bar": ("css/menus.css", "css/bar.css"),
    "transcript": ("css/menus.css", "css/messages.css", "tools/tool-files.css"),
    "model": ("css/menus.css", "css/sheets.css", "js/desk.js"),
    "dialog": (
        *("css/menus.css", "css/forms.css", "css/dialog.css", "js/open-dialog.js"),
    ),
    "attachments": (
        *("attachments/attachment-cards.css", "css/files.css"),
        "attachments/attachment-cards.js",
    ),
    "code": ("css/code-colours.css", "js/colours.js"),
    "context": ("css/replay.css", "js/replay.js"),
    "counterparts": ("css/lights.css", "js/counterpart-lights.js"),
    "reading": ("js/reading-acts.js",),
}
# What a summary can have lost of a message, and of several.
DROPPED_KINDS = {
    "decision": ngettext_lazy("decision", "decisions", "n"),
    "open": ngettext_lazy("open point", "open points", "n"),
    "negation": ngettext_lazy("“not” was lost", "“not”", "n"),
    "hedge": ngettext_lazy("“maybe” was lost", "“maybe”", "n"),
    "identifier": ngettext_lazy("identifier", "identifiers", "n"),
    "date": ngettext_lazy("date", "dates", "n"),
    "number": ngettext_lazy("number", "numbers", "n"),
    "name": ngettext_lazy("name", "names", "n"),
}


@register.simple_tag(takes_context=True)
def address(context: template.Context) -> str:
    """Return the URL that opens this page again, also where it is a form's response."""
    request = context.get("request")
    if request is None:
        return "/"
    name = request.resolver_match.url_name if request.resolver_match else ""
    again = request.method == "GET" or name in FORMS or context.get("opens_again")
    return request.get_full_path() if again else "/"


@register.simple_tag(takes_context=True)
def slot(context: template.Context, place: str, **values: object) -> SafeString:
    """Return all that apps show in this slot of a page."""
    return slots.draw(place, context=context, **values)


@register.simple_tag(takes_context=True)
def conversation_stylesheets(context: template.Context) -> SafeString:
    """Return links to the stylesheets of steps and of files.

    Only if the page shows some, or the next reply may have some.
    """
    panes = filter(None, map(context.get, ("older", "pane")))
    items = (item for pane in panes for item in pane.items)
    paths, turns = [], [item for item in items if isinstance(item, TurnView)]
    has_tools = registry.list_offered(context["conversation"])
    if has_tools or any(turn.cards for turn in turns):
        paths.append("tools/tools.css")
    if any(message.attachments for turn in turns for message in turn.messages):
        paths.append("css/files.css")
    link = '<link rel="stylesheet" href="{}">'
    return format_html_join("", link, ((static(path),) for path in paths))


@register.simple_tag
def bundle(name: str) -> SafeString:
    """Return the stylesheet and the script of this name (chatsite/staticfiles.py).

    They list their parts, and what scripts load on first use, for first-use.js.
    """
    styles, script = f"bundles/{name}.css", f"bundles/{name}.js"
    link = '<link rel="stylesheet" href="{}" data-parts="{}">'
    parts = " ".join(map(static, list_parts(styles))) if styles in BUNDLES else ""
    stems = [PurePath(part).stem for part in list_parts(script)]
    lazy = ((stem, first_use(stem)) for stem in stems if list_first_use(stem))
    return format_html(
        '{}<script src="{}"{} defer></script>',
        format_html(link, static(styles), parts) if parts else "",
        static(script),
        format_html_join("", ' data-use-{}="{}"', lazy),
    )


@register.simple_tag
def first_use(part: str) -> str:
    """Return the addresses to load when this part of the page is first used.

    See static/js/first-use.js.
    """
    return " ".join(map(static, list_first_use(part)))


def list_first_use(part: str) -> tuple[str, ...]:
    return (*FIRST_USE.get(part, ()), *slots.static_files(part))


@register.simple_tag(takes_context=True)
def step_card(context: template.Context, card: ToolCard) -> str:
    return card.draw(context["conversation"])


@register.filter
def markdown(text: str, role: str = "") -> SafeString:
    return render_markdown(text, is_typed=role == "user")


@register.filter
def message_html(message: ShownMessage) -> SafeString:
    """Return a message's text, here or on a shared page, with its citations linked."""
    is_typed = message.role == Message.Role.USER
    return render_markdown(message.text, is_typed=is_typed, cited=message.cited)


@register.filter
def is_folded(message: ShownMessage) -> bool:
    """Return if a user's own text is folded until the rest is requested."""
    has_more = len(message.text) > FOLD_CHARS or message.text.count("\n") >= FOLD_LINES
    return message.role == Message.Role.USER and has_more


@register.filter
def thousands(number: int | None) -> str:
    return "–" if number is None else languages.group_thousands(number)


@register.filter
def local_time(time: datetime) -> SafeString:
    """Return a time inside of a sentence, which the page shows in the reader's zone."""
    shown = date_format(localtime(time), _("j M H:i"))
    return format_html('<time datetime="{}">{}</time>', time.isoformat(), shown)


@register.filter
def tool_labels(names: Iterable[str]) -> str:
    return _(", ").join(map(registry.label_of, names))


@register.filter
def versions(found: Iterable[Summary | int]) -> str:
    return ", ".join(f"v{getattr(each, 'version', each)}" for each in found)


@register.filter
def spans_of(spans: dict[int, Ranges], version: int) -> str:
    """Return the messages that a version has there, as in "#3, #5–#8"."""
    found = spans.get(version, ())
    return ", ".join(f"#{a}" if a == b else f"#{a}–#{b}" for a, b in found)


@register.simple_tag
def attachment_limits() -> dict[str, int]:
    """Return the limits that the page checks at once, and the server in a moment."""
    return {
        "max_mb": settings.ATTACHMENT_MAX_MB,
        "max_bytes": settings.ATTACHMENT_MAX_MB * 1024 * 1024,
        "max_chars": settings.ATTACHMENT_MAX_CHARS,
    }


@register.simple_tag
def staff_can_read() -> bool:
    return settings.STAFF_CAN_READ_CHATS


@register.simple_tag
def temporary_minutes() -> int:
    """Return how many minutes a temporary conversation outlives its last open page."""
    return transcript.TEMPORARY_MINUTES


@register.filter
def percent(permille: int) -> str:
    """Return a length for SVG."""
    return f"{permille / 10}%"


@register.filter
def dropped(flags: Mapping[str, Any]) -> list[DroppedDetail]:
    """Return details that a summary did not carry over from its messages."""
    lines = flags.get("dropped", ())
    return list(filter(None, map(DroppedDetail.parse_line, lines)))


@register.filter
def lacking(flags: Mapping[str, Any]) -> list[DroppedCount]:
    """Return what it did not carry over, by messages; old versions have no counts."""
    lines = flags.get("dropped_from", ())
    return list(filter(None, map(DroppedCount.parse_line, lines)))


@register.filter
def lacking_words(each: DroppedCount) -> str:
    """Return the words for a count, as in "numbers from 41 messages"."""
    words = ngettext(
        "%(kind)s from %(n)s message", "%(kind)s from %(n)s messages", each.count
    )
    return words % {"kind": DROPPED_KINDS[each.kind] % {"n": 2}, "n": f"{each.count:,}"}


@register.filter
def lacking_list(found: Iterable[DroppedCount]) -> str:
    return _(", ").join(map(lacking_words, found))


@register.filter
def dropped_kind(kind: str) -> str:
    return str(DROPPED_KINDS[kind] % {"n": 1})
