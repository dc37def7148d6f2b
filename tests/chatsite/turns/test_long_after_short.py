"""A long message after short ones, with a server that adds to every request."""

import pytest

from chatsite.turns import attempt, commands, lifecycle
from chatsite.turns.models import Turn
from memory import transcript
from memory.engine.tokens import count_tokens

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("constant", [300, 3000])
def test_a_long_message_that_fits_is_taken(alice, settings, constant):
    settings.CONTEXT_WINDOW = 32_000
    conversation = transcript.create_conversation(alice)
    for number in range(6):
        commands.submit_message(
            conversation, text=f"ok {number}", client_id=f"c{number}"
        )
        claim = lifecycle.claim(conversation.pk)
        request = attempt.prepare_attempt(claim)
        begun = lifecycle.begin(claim, request.built, request.model)
        reported = count_tokens(request.built.context.messages) + constant
        result = lifecycle.TurnResult(
            Turn.State.DONE, "yes", tokens_input=reported, tokens_output=1
        )
        lifecycle.finish(begun, result)
    conversation.refresh_from_db()
    assert conversation.token_ratio == pytest.approx(1, abs=0.1)
    commands.submit_message(conversation, text="水" * 12_000, client_id="big")
    request = attempt.prepare_attempt(lifecycle.claim(conversation.pk))
    assert request.built.tokens < 32_000
