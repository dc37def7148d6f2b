"""The texts for each lineage of a request, and for each code of its reasons."""

from django.utils.translation import gettext_lazy as _

LINEAGES = {
    "new": _("A new conversation"),
    "single": _("A single call"),
    "continued": _("Continues this conversation"),
    "branch": _("A branch: continues after an earlier message"),
    "client-compacted": _("Continues, but your client has dropped the beginning"),
    "retry": _("The same request again, for another reply"),
}
WHY = {
    "tip": _("Everything before the new messages matches this conversation."),
    "inside": _("Its first messages match a conversation that continued differently."),
    "whole": _("All of its messages were here before and had a reply."),
    "prefill": _("It ends with a reply that the model should continue."),
    "open": _("The same request was running, had failed or was stopped."),
    "retry-header": _("The client says that it tries again."),
    "retry-key": _("The same request came before with this idempotency key."),
    "side": _(
        "It contains this conversation, but has its own instructions and tools: "
        "your client asked this separately, for example for a title or for its own "
        "memory."
    ),
    "rewritten": _(
        "It has replies from here in their order; your client changed the "
        "messages around them."
    ),
    "suffix": _(
        "Text written by your client, such as a summary, comes before the last "
        "messages of this conversation."
    ),
    "head-cut": _("It has only the last messages of this conversation."),
    "hint-compacted": _("The client says that it has compacted the conversation."),
    "one-message": _("It is one message that was not here before."),
    "unknown": _("None of its messages was here before."),
    "equal-first": _(
        "Another conversation began with the same words and has its reply, so a "
        "new one was started."
    ),
    "no-served-reply": _(
        "Another conversation begins with the same words, but the request has no "
        "reply from here, so a new one was started."
    ),
    "unknown-replies": _(
        "Too little matches an existing conversation, so a new one was started."
    ),
    "two-fit": _("It matches two conversations equally, so a new one was started."),
    "previous": _("It names a reply from here and continues after it."),
    "compaction": _("It contains the provider's own summary of earlier messages."),
    "header-same": _("Your client's own id says the same."),
    "header-other": _(
        "Your client's own id belongs to another conversation. The messages decided."
    ),
    "header-new": _("Your client's own id is new."),
    "header-shared": _(
        "Your client uses one id for several conversations, so the id was ignored."
    ),
}
# The client's changes with a request, shown below its question.
CHANGES = {
    "instructions": _("Your client changed its instructions."),
    "rewritten": _("Your client reworded earlier messages."),
    "forgotten": _("Your client has forgotten earlier messages."),
}
