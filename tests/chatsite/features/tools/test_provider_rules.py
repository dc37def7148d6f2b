"""Conversations with calls of tools, from here and from elsewhere, at providers that
refuse what the real ones refuse: each message is answered.
"""

import pytest
from channels.db import database_sync_to_async as reading

from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.tools import registry
from chatsite.features.tools.context import SITE
from chatsite.llm import dialects
from memory import transcript
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.fakes import many_tools
from tests.fakes.provider_rules import DETAILS, PROVIDERS, SIGNATURE

from ...scenes import Use, signed_in, url, use_tools
from ...sockets import Chat
from ..attachments.images.scenes import send_images
from ..importing.test_importing import as_json, chatgpt, node, take
from ..importing.test_tools import CLAUDE

pytestmark = pytest.mark.django_db(transaction=True)

LONG_ID = "tool_0_calculate_8f14e45fceea167a5a36dedd4bea2543"
NAMES = ("web.run", "web_run", "x" * 90, "天气", "2nd", "")


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.name)
def provider(request, settings, upstream):
    dialects._known.clear()
    settings.CHAT_MODEL = request.param.model
    settings.TOOLS = many_tools.PATHS
    settings.TOOLS_ON_DEMAND = 0
    settings.CONTEXT_WINDOW = 400_000
    upstream.provider = request.param
    yield request.param
    dialects._known.clear()


def check(conversation):
    """Each request is proved to be what was sent."""
    calls = ModelCall.objects.filter(conversation=conversation, purpose="reply")
    assert calls.exists()
    assert all(rebuilding.verify_context(call) for call in calls)


async def say(conversation, session, *texts):
    async with Chat(conversation, session) as chat:
        for text in texts:
            end = await chat.say(text)
            assert end["state"] == "done", end
    await reading(check)(conversation)


def write_foreign(owner):
    """A conversation with calls as no provider takes them: their names and ids."""
    made = transcript.create_conversation(owner)
    for name in NAMES:
        use_tools(made, "Look it up.", Use(name=name), Use(name=name, result="Two"))
    return made


def import_all(owner, source):
    """A conversation of each form that is imported, with calls."""
    code = {"content_type": "code", "text": "1 + 1"}
    nodes = [
        node("q", "user", "Count", None),
        node("c", "assistant", "", "q", recipient="python", content=code),
        node("r", "tool", "2", "c"),
        node("w", "assistant", '{"q": "x"}', "r", recipient="web.run"),
        node("r2", "tool", "found", "w"),
        node("a", "assistant", "Two.", "r2"),
    ]
    mapping = {each["id"]: each for each in nodes}
    own = as_json(export_thread(source))
    for row in own["messages"]:
        for call in row["tool_calls"]:
            call["id"] += LONG_ID
        if row["tool_call_id"]:
            row["tool_call_id"] += LONG_ID
    for row in own["tool_calls"]:
        row["call_id"] += LONG_ID
    claude = {**CLAUDE, "uuid": "c-3"}
    files = (own, chatgpt(mapping=mapping, current_node="a"), claude)
    made = [each for file in files for each in take(owner, file).imported]
    assert len(made) == len(files)
    return made


@reading
def give_tools(conversation, *names):
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(tools=[*names])
    return rows.get()


@pytest.mark.parametrize("has_tools", [False, True])
async def test_history_from_elsewhere_is_answered(
    alice, bob, session, provider, has_tools
):
    source = await reading(write_foreign)(bob)
    for made in await reading(import_all)(alice, source):
        if has_tools:
            await give_tools(made, "calculate")
        await say(made, session, "And now?", "And then?")


async def test_two_hundred_tools_are_offered_as_far_as_they_can_be(
    conversation, session, provider, upstream
):
    known = await reading(registry.known)()
    names = [name for name in known if known[name].source == SITE]
    assert len(names) == many_tools.COUNT
    conversation = await give_tools(conversation, *names)
    await say(conversation, session, "Call one.", "Call another.")
    offered = upstream.calls[-1].body.get("tools", [])
    assert len(offered) <= 128
    if offered:
        left = names[len(offered) :]
        call = await reading(conversation.model_calls.latest)("pk")
        assert call.refs["tools_left_out"] == left

        def look():
            client = signed_in(conversation.owner)
            return client.get(url("context", conversation)).content.decode()

        page = await reading(look)()
        assert left[0] in page.partition('id="tools-left-out"')[2].partition("</p>")[0]


@pytest.mark.parametrize("size", [40, 41, 64, 65])
async def test_long_ids_are_answered(conversation, session, provider, size):
    await reading(use_tools)(
        conversation, "Look it up.", Use(call_id="c" * size), Use(call_id="d" * size)
    )
    await give_tools(conversation, "calculate")
    await say(conversation, session, "And now?", "And then?")


async def test_images_and_calls_go_together(conversation, session, provider, settings):
    settings.IMAGE_MODELS = ["*"]
    await reading(use_tools)(conversation, "Look it up.", Use(name="web.run"))
    await reading(send_images)(conversation)
    await say(conversation, session, "What is in it?")


async def test_extras_come_back_to_their_provider_alone(
    conversation, session, provider, upstream, settings
):
    conversation = await give_tools(conversation, "calculate")
    await say(conversation, session, "Call it.", "And once more.")
    for message in upstream.calls[-1].messages:
        if not message.get("tool_calls"):
            continue
        if provider.beside:
            assert (
                message["tool_calls"][0]["extra_content"]
                == (SIGNATURE["extra_content"])
            )
        if provider.thinks:
            assert message["reasoning_content"] == "I look it up."
        if provider.has_details:
            assert message["reasoning_details"] == DETAILS
    settings.OPENAI_BASE_URL = upstream.url.replace("127.0.0.1", "localhost")
    await say(conversation, session, "Thank you.")
    sent = str([each for each in upstream.calls[-1].messages if each["role"] != "tool"])
    # What follows is of the other one.
    sent = sent.partition("Thank you.")[0]
    assert "I look it up." not in sent
    assert "c2lnbmVk" not in sent
