"""Open WebUI and LibreChat: requests in the forms in which these write them.

Open WebUI: backend/open_webui/routers/openai.py (headers), config.py (templates of its
tasks) and utils/middleware.py (what it found is put before the last message).
LibreChat: packages/api/src/utils/env.ts (headers), and src/utils/title.ts of
@librechat/agents, whose completion method asks for titles.
"""

import pytest

from .clients import LONG, Client, reply, system, user

QUESTION = "Which of these parcels came late?"
CHAT = {"x-openwebui-chat-id": "5f2b6d1e-6a54-4a8e-9df2-0c1e8b7a1d11"}
CHAT["x-openwebui-user-id"] = "b1a6"
FOUND = (
    "### Task:\nRespond to the user query using the provided context, incorporating "
    "inline citations in the format [id] **only when the <source> tag includes an "
    'explicit id attribute** (e.g., <source id="1">).\n\n<context>\n'
    '<source id="1" name="parcels.csv">7, late\n8, in time</source>\n</context>\n\n'
)
TASKS = (
    "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
    "Generate 1-3 broad tags categorizing the main themes of the chat history, along "
    "with 1-3 more specific subtopic tags.",
    "Suggest 3-5 relevant follow-up questions or prompts that the user might "
    "naturally ask next in this conversation as a **user**.",
)
THOUGHT = (
    '<details type="reasoning" done="true" duration="3">\n'
    "<summary>Thought for 3 seconds</summary>\n> Seven came late.\n</details>\n"
)


def write_task(task, *said):
    """One message with all that was said, for a title, tags or questions."""
    lines = "\n".join(f"{m['role'].upper()}: {m['content']}" for m in said)
    history = f"<chat_history>\n{lines}\n</chat_history>"
    return user(f"### Task:\n{task}\n### Chat History:\n{history}")


@pytest.mark.parametrize("headers", [{}, CHAT])
def test_open_webui(headers):
    client = Client()
    client.headers = headers
    asked = system("Today is Monday."), user(FOUND + QUESTION)
    first = client.send(*asked, answer=LONG)
    said = [user(QUESTION), reply(LONG)]
    tasks = [
        client.send(write_task(task, *said), answer='{"title": "📦 Late parcels"}')
        for task in TASKS
    ]
    assert {each.lineage for each in tasks} == {"single"}
    # The found text has gone, the reply has come back with what was thought.
    said = [system("It is 9."), user(QUESTION), reply(THOUGHT + LONG), user("And 8?")]
    second = client.send(*said, answer="It came in time.")
    said += [reply("It came in time."), user(FOUND + "And 9?")]
    third = client.send(*said)
    assert [each.lineage for each in (second, third)] == ["continued"] * 2
    conversations = {each.conversation for each in (first, second, third)}
    assert len(conversations) == 1
    assert not conversations & {each.conversation for each in tasks}
    # A task belongs to a conversation that is more than one question.
    client.send(write_task(TASKS[2], *said[1:]), answer="{}")
    assert client.decision.linked == (first.conversation if headers else None)
    # *Regenerate* leaves the last reply out.
    assert client.send(*said[:4], answer="At nine.").lineage == "branch"


def test_librechat():
    client = Client(x_librechat_conversation_id="")
    first = client.send(user(QUESTION), answer=LONG)
    client.headers = {"x-librechat-conversation-id": "8d1c0f7e"}
    titled = client.send(
        user(
            "Provide a concise, 5-word-or-less title for the conversation, using title "
            "case conventions. Only return the title itself.\n\nConversation:\n"
            f"User: {QUESTION}\nAI: {LONG}"
        ),
        answer="Late Parcels",
    )
    assert titled.lineage == "single"
    said = [system("Be brief."), user(QUESTION), reply(LONG), user("And 8?")]
    second = client.send(*said)
    assert (second.lineage, second.conversation) == ("continued", first.conversation)
    # An edited question, with the same id of the conversation.
    other = client.send(*said[:3], user("And 9?"))
    assert other.lineage == "branch"
