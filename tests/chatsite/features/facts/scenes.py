"""Facts that a user states and keeps."""

from chatsite.features.facts import services
from memory import transcript
from tests.memory.scenes import ask, reply_to

ON = {"facts": "on"}


def start(owner, **policy):
    return transcript.create_conversation(owner, policy={**ON, **policy})


def state_fact(conversation, said):
    """A message with facts, which are offered, and its reply."""
    message = ask(conversation, said)
    reply_to(message, "All right.")
    conversation.refresh_from_db()
    return message


def keep_fact(conversation, said, **options):
    """The fact of a message, kept."""
    message = state_fact(conversation, said)
    fact = message.facts.latest("pk")
    services.keep_fact(conversation.owner_id, fact.pk, **options)
    fact.refresh_from_db()
    return fact
