"""Small conversations in the database for the tests of this package."""

from langchain_core.messages import AIMessage

from memory import transcript


def talk(conversation, turns, *, words=8):
    """Append whole turns: a user message and its reply, each with its number in it."""
    for _ in range(turns):
        number = conversation.messages.count()
        text = f"Message {number} says " + "word " * words
        message, _ = transcript.append_user_message(
            conversation, text=text, client_id=f"c{number}"
        )
        transcript.append_reply(
            conversation,
            seq=message.seq + 1,
            text=f"Reply {number}. " + "word " * words,
        )


class Recorder:
    """A summariser's model that answers from a list, or always the same."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def __call__(self, messages, *, schema=None):
        self.requests.append(messages)
        answer = self.answers.pop(0) if self.answers else "They talked."
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = await answer()
        return AIMessage(
            answer,
            usage_metadata={"input_tokens": 50, "output_tokens": 5, "total_tokens": 55},
            response_metadata={"finish_reason": "stop", "attempts": 1},
        )
