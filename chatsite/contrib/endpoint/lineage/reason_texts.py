"""The texts for each lineage of a request, and for each code of its reasons."""

from django.utils.translation import gettext_lazy as _

LINEAGES = {
    "new": _("The beginning of a conversation"),
    "single": _("A single call"),
    "continued": _("Goes on at the end of this conversation"),
    "branch": _("A branch: goes on after an earlier message"),
    "client-compacted": _("Goes on, but your client has forgotten its beginning"),
    "retry": _("The same request again, for another reply"),
}
WHY = {
    "tip": _("All that came before the new messages is what this conversation has."),
    "inside": _(
        "Its first messages are those of a conversation that had gone on differently."
    ),
    "whole": _("All of its messages were there, and had a reply."),
    "prefill": _("It ends with the reply that the model is to go on with."),
    "open": _("The same request was running, had failed or was stopped."),
    "retry-header": _("The client says that it tries again."),
    "retry-key": _("The same request came before with this idempotency key."),
    "side": _(
        "It has this conversation, but instructions and tools of its own: your client "
        "asked this beside it, such as for a title or for its own memory."
    ),
    "rewritten": _(
        "Replies from here stand in it in order; your client has changed messages "
        "around them."
    ),
    "suffix": _(
        "Words of your client's own, such as a summary, stand before the last messages "
        "of this conversation."
    ),
    "head-cut": _("It has only the last messages of this conversation."),
    "hint-compacted": _("The client says that it has compacted the conversation."),
    "one-message": _("It is one message that was not there before."),
    "unknown": _("Nothing in it was there before."),
    "equal-first": _(
        "The same words began another conversation, which has its reply: in doubt, it "
        "is a new one."
    ),
    "no-served-reply": _(
        "The same words begin another conversation, but no reply from here is among "
        "them: in doubt, it is a new one."
    ),
    "unknown-replies": _(
        "Replies that were not sent from here follow after too little that is known: "
        "in doubt, it is a new one."
    ),
    "two-fit": _("It fits two conversations equally: in doubt, it is a new one."),
    "previous": _("It names a reply from here, after which it goes on."),
    "compaction": _("The provider's own short form of what came before stands in it."),
    "header-same": _("Your client's own id says the same."),
    "header-other": _(
        "Your client's own id is that of another conversation. What was said counts."
    ),
    "header-new": _("Your client's own id is new."),
    "header-shared": _(
        "Your client uses one id for several conversations, so it says nothing."
    ),
}
# The client's changes with a request, shown below its question.
CHANGES = {
    "instructions": _("Your client changed its instructions."),
    "rewritten": _("Your client sent earlier messages in other words."),
    "forgotten": _("Your client has forgotten earlier messages."),
}
