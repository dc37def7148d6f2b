"""Side calls on the page: what a client asks beside a conversation is no entry of its
own in the list, and says so."""

import pytest

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import ClientConversation, ClientRequest
from chatsite.contrib.endpoint.store.owner_history import OwnerHistory
from memory.models import Conversation
from tests.chatsite.scenes import page_of

from ..asgi_client import send
from ..test_chat_completions import asking
from .test_why import instructs, replies, says, why

pytestmark = pytest.mark.django_db(transaction=True)
CODER = "You are a coding agent. Edit files with your tools, and run the tests."
KEEPER = "Find out what is worth knowing of the person, as a list of short notes."
BESIDE = "Your client asked this alongside <a"


@pytest.fixture
def key(alice, upstream):
    return keys.create_api_key(alice, "Qwen Code")[1]


def tools(name):
    function = {"name": name, "parameters": {"type": "object", "properties": {}}}
    return [{"type": "function", "function": function}]


def work(key, turns):
    """Send user turns, each followed by a side call."""
    history = []
    for number in range(turns):
        question = f"What does module {number} of the parser do with an empty file?"
        history.append(says(question))
        send(key, instructs(CODER), *history, tools=tools("edit"))
        history.append(replies(question))
        beside = [instructs(KEEPER), *history, says("Which notes are there?")]
        send(key, *beside, tools=tools("write_note"))
    return history


def test_six_turns_with_side_calls_are_one_conversation(client, key):
    work(key, 6)
    main, *sides = Conversation.objects.order_by("pk")
    assert main.messages.count() == 12
    assert len(sides) == 6
    shown = client.get("/").content.decode()
    assert [str(each.uuid) in shown for each in (main, *sides)] == [True] + 6 * [False]
    assert "Single calls (6)" in shown
    lineages = ClientRequest.objects.filter(call__conversation=main)
    assert {*lineages.order_by("pk").values_list("lineage", flat=True)[1:]} == {
        "continued"
    }


def test_a_summary_after_a_side_call_with_wrapped_replies_goes_on(key):
    history = work(key, 1)
    wrapped = f"<details>It took a second.</details>\n{history[-1]['content']}"
    history[-1] = {**history[-1], "content": wrapped}
    beside = [instructs(KEEPER), *history, says("Which notes are there now?")]
    send(key, *beside, tools=tools("write_note"))
    main, *sides = Conversation.objects.order_by("pk")
    assert main.client_messages.filter(is_again=True).count() == 2
    told = [says("A summary of it all."), replies("Got it."), *history]
    send(key, instructs(CODER), *told, says("And then?"), tools=tools("edit"))
    last = ClientRequest.objects.latest("pk")
    assert last.call.conversation == main
    assert Conversation.objects.count() == 1 + len(sides)


def test_a_conversation_without_known_tools_has_no_side_calls(key):
    history = work(key, 1)
    ClientRequest.objects.update(tools="")
    beside = [instructs(KEEPER), *history, says("Which notes are there now?")]
    send(key, *beside, tools=tools("write_note"))
    assert [*ClientRequest.objects.filter(lineage="branch")] == [
        ClientRequest.objects.order_by("pk")[1]
    ]


def test_an_agent_is_known_without_its_body(key, django_assert_num_queries):
    work(key, 1)
    made = Conversation.objects.earliest("pk")
    (request,) = ClientRequest.objects.filter(call__conversation=made)
    known = OwnerHistory(made.owner_id)
    with django_assert_num_queries(2):
        assert known.has_spoken(str(made.pk), "others", request.tools)
    with django_assert_num_queries(3):
        assert known.has_spoken(str(made.pk), CODER, "0" * 64)
    with django_assert_num_queries(3):
        assert not known.has_spoken(str(made.pk), KEEPER, "0" * 64)


@pytest.mark.parametrize("stamp", ["", "It is {}:40. "])
def test_agents_that_hand_over_to_each_other_keep_one_conversation(
    client, key, upstream, stamp
):
    """One takes the question, and the other goes on with the result of a tool."""
    history = []
    for number in range(3):
        question = f"What does module {number} of the parser do?"
        history.append(says(question))
        function = {"name": "edit", "arguments": "{}"}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        upstream.script(lambda x, call=call: x.send_json(asking(call)))
        coder = instructs(stamp.format(number) + CODER)
        send(key, coder, *history, tools=tools("edit"))
        result = {"role": "tool", "tool_call_id": call["id"], "content": "Yours."}
        history += [asking(call)["choices"][0]["message"], result]
        send(key, instructs(KEEPER), *history, tools=tools("write_note"))
        history.append(replies(question))
    made = Conversation.objects.order_by("pk")
    assert [*made.values_list("of_client__is_single", flat=True)] == [False]


def test_a_side_call_says_where_it_belongs(client, key):
    work(key, 1)
    main, side = Conversation.objects.order_by("pk")
    assert BESIDE in page_of(client, side)
    assert BESIDE not in page_of(client, main)
    assert "has its own instructions and tools" in why(client, side)
    assert "this is a side call of it" in why(client, side)
    assert "a side call of this" in why(client, main)


def test_a_side_call_is_an_entry_once_a_question_follows(client, key):
    history = work(key, 1)
    question = "Which notes are there?"
    beside = [instructs(KEEPER), *history, says(question), replies(question)]
    send(key, *beside, says("Is there one of the tests?"), tools=tools("write_note"))
    main, side = Conversation.objects.order_by("pk")
    assert str(side.uuid) in client.get("/").content.decode()
    assert BESIDE not in page_of(client, side)
    assert not ClientConversation.objects.filter(is_single=True).exclude(pk=main.pk)


def test_a_single_call_that_is_sent_again_stays_single(client, key):
    for count in ("0", "1"):
        title = says("A title for this talk, please.")
        send(key, title, headers={"x_stainless_retry_count": count})
    assert ClientConversation.objects.get().is_single
