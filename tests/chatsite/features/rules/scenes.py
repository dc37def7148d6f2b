"""Rules that a user states and confirms."""

from chatsite.features.rules import services
from tests.memory.scenes import ask, reply_to


def confirm_rule(conversation, *, room=1000, **options):
    """Confirm the rule that was stated last."""
    conversation.refresh_from_db()
    rule = conversation.rules.latest("pk")
    return services.confirm_rule(conversation, rule.pk, room=room, **options)


def state_rule(conversation, said, **options):
    """A message with a rule, confirmed, and its reply."""
    message = ask(conversation, said)
    reply_to(message, "All right.")
    confirm_rule(conversation, **options)
    conversation.refresh_from_db()
    return message
