"""The errors of turns and commands: codes for tables and clients, sentences for users.

No text of a provider ever gets here.
"""

from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from chatsite.llm.errors import DETAILS

EXPLANATIONS = DETAILS | {
    "length": _("The reply was cut off at the model's limit."),
    "client_gone": _("The client stopped reading, so this reply ends where it did."),
    "compacted": _(
        "The provider summarised the conversation instead of answering. The client "
        "goes on from its summary."
    ),
    "cut_off": _("The model's provider ended the reply before it was complete."),
    "no_finish_reason": _("The connection to the model ended before the reply did."),
    "quota": _(
        "You have used up your limit for now. Nothing is lost; try again later."
    ),
    "deactivated": _("The account is deactivated."),
    "interrupted": _("The server stopped while the reply was being written."),
    "message_deleted": _("The message was deleted before it was answered."),
    "step_removed": _(
        "One of its tool calls was deleted or hidden while this reply was being "
        "written, so it was stopped."
    ),
    "no_reply": _("Retry asks the model for one."),
    "tool_error": _("The tool failed."),
    "tool_timeout": _("The tool took too long."),
    "tool_limit": _("This reply has used up its tool calls."),
    "too_many_late": _(
        "You are waiting for as many results as the limit allows. Cancel some of "
        "them, or wait until they arrive."
    ),
    "tool_off": _("This tool is switched off for now."),
    "bad_arguments": _("The arguments do not fit the tool."),
    "not_run": _("The reply ended before this call was complete. It did not run."),
    "replaced": _(
        "The reply that asked for this was replaced, so its result is no longer "
        "awaited."
    ),
    "tool_cancelled": _("The tool has cancelled this call."),
    "input_required": _("The tool asked for something that this site can't give it."),
    "refused": _("You did not allow this call."),
    "consent_expired": _("This call was not allowed in time, so it did not run."),
    "deadline": _("The result did not come in time."),
    "cancelled": _("You stopped waiting for this result."),
    "call_deleted": _("The call was deleted, so its result is no longer awaited."),
    "internal": _(
        "Something went wrong on this site. Your message is safe; try again."
    ),
}

# Of an app that is off, another release, or an import.
UNKNOWN = _("It ended with the code “%(code)s”, which this site can't explain.")
MAX_CODE_CHARS = 40

# By the names that failed and rejected versions keep.
COMPACTION_EXPLANATIONS = {
    "EmptySummary": _("The summary is empty."),
    "ErrorSummary": _("The model answered with an error, not with a summary."),
    "RefusedSummary": _("The model declined to summarise."),
    "TruncatedSummary": _("The summary was cut off by the provider."),
    "OverlongSummary": _("The summary was longer than the text it would replace."),
}


def explain_compaction(name: str) -> str:
    """Return why a version was not made, from the name that its row keeps."""
    return gettext(COMPACTION_EXPLANATIONS.get(name) or EXPLANATIONS.get(name, name))


def explain_code(code: str) -> str:
    name, _, reason = code.partition(":")
    if name not in EXPLANATIONS:
        return gettext(UNKNOWN) % {"code": name[:MAX_CODE_CHARS]}
    text = gettext(EXPLANATIONS[name])
    if name == "unavailable":
        text += _name_address()
    if not reason:
        return text
    if name == "tool_refused":
        named = gettext("It is %(name)s.") % {"name": reason}
        return f"{text} {named}"
    told = gettext("The reason it gave: %(reason)s.") % {"reason": reason}
    return f"{text} {told}"


def _name_address() -> str:
    """Return where the model server was looked for, when users run their own.

    Empty outside of DEBUG and without OPENAI_BASE_URL.
    """
    if not (settings.DEBUG and settings.OPENAI_BASE_URL):
        return ""
    # Without a name and a password, which an address may have.
    scheme, _, rest = settings.OPENAI_BASE_URL.partition("://")
    address = f"{scheme}://{rest.rpartition('@')[2]}"
    said = gettext("OPENAI_BASE_URL is %(address)s: does a server answer there?")
    return " " + said % {"address": address}


class CommandError(Exception):
    """A command that cannot be done; it changes nothing and the socket stays open."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        client_id: str | None = None,
        retry_after: float | None = None,
        seq: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.client_id = client_id
        self.retry_after = retry_after
        # The message that has taken the place of the one that was meant.
        self.seq = seq
