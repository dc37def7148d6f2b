"""What owners change of their conversations is in the log, whatever door they use."""

import pytest

from chatsite.pages import memory_actions
from chatsite.rules.views import RULE_STATES
from chatsite.turns import commands
from memory import transcript
from memory.models import Change
from tests.fakes import own_tools
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ..rules.scenes import state_rule
from ..scenes import memory_url, signed_in, talk_in_turns, url
from ..tools import calls
from .test_timeline import url_of

pytestmark = pytest.mark.django_db
Action = Change.Action


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice, title="Trip")
    talk_in_turns(made, *(f"Text {n}" for n in range(4)))
    return made


@pytest.fixture
def owner(alice):
    return signed_in(alice)


def recorded(conversation):
    rows = conversation.changes.order_by("pk")
    return [*rows.values_list("action", "seq", "version")]


@pytest.mark.parametrize("name", [*memory_actions.MESSAGE_ACTIONS])
def test_an_act_on_a_message(owner, conversation, name):
    opposite = {"unpin": "pin", "bring-back": "leave-out"}
    expected = [*filter(None, [opposite.get(name)]), name]
    for each in expected:
        owner.post(memory_url("message", conversation, seq=3, name=each))
    assert recorded(conversation) == [(each, 3, None) for each in expected]


@pytest.mark.parametrize(
    ("view", "values", "data", "expected"),
    [
        ("rewrite", {"version": 1}, {"text": "Mine"}, (Action.REWRITE, None, 1)),
        ("reinstate", {}, {"versions": "1"}, (Action.REINSTATE, None, None)),
        ("rebuild", {}, {}, (Action.REBUILD, None, None)),
        ("set-system-prompt", {}, {"text": "Be"}, (Action.SYSTEM_PROMPT, None, None)),
        ("set-tools", {}, {"tool": "calculate"}, (Action.TOOLS, None, None)),
    ],
)
def test_an_act_on_the_memory(owner, conversation, view, values, data, expected):
    summarise(conversation, 1, 4)
    owner.post(memory_url(view, conversation, **values), data)
    assert recorded(conversation) == [expected]


@pytest.mark.parametrize("name", ["keep", *RULE_STATES])
def test_an_act_on_a_rule(owner, conversation, name):
    state_rule(conversation, "Always answer in French.")
    rule = conversation.rules.get()
    owner.post(memory_url("rule", conversation, pk=rule.pk, name=name))
    assert recorded(conversation) == [(name, None, None)]


def test_what_is_done_with_the_whole(owner, conversation):
    owner.post(url("rename", conversation), {"title": "Kyoto"})
    owner.post(url("model", conversation), {"model": "demo"})
    owner.post(url("policy", conversation), {"preset": "langgraph"})
    owner.post(url("branch", conversation), {"seq": 4})
    turn = conversation.turns.order_by("pk").last()
    commands.regenerate_reply(conversation, turn.pk)
    assert recorded(conversation) == [
        (Action.TITLE, None, None),
        (Action.MODEL, None, None),
        (Action.POLICY, None, None),
        (Action.BRANCH, 4, None),
        (Action.REGENERATE, 8, None),
    ]


def test_an_edit_is_recorded_once_however_often_it_comes(conversation):
    for _ in range(2):
        commands.edit_message(conversation, seq=3, text="Other words", client_id="e1")
    assert recorded(conversation) == [(Action.EDIT, 3, None)]


@pytest.mark.parametrize(("allow", "action"), [("true", "allow"), ("false", "refuse")])
def test_the_answer_to_a_call(alice, owner, settings, allow, action):
    settings.TOOLS = own_tools.PATHS
    made = calls.create(alice)
    claim, (call,) = calls.ask(made, ("send_mail", {"to": "bob@example.org"}))
    (call,) = calls.wait(claim, call)
    address = f"/c/{made.uuid}/calls/{call.pk}/answer/"
    for _ in range(2):
        owner.post(address, {"allow": allow, "digest": call.digest})
    assert recorded(made) == [(action, call.request.seq, None)]


def test_what_was_refused_is_no_change(owner, conversation):
    owner.post(memory_url("message", conversation, seq=99, name="pin"))
    owner.post(memory_url("restore", conversation, version=7))
    owner.post(memory_url("set-system-prompt", conversation), {"text": "\x00"})
    owner.post(url("model", conversation), {"model": "no such model"})
    assert recorded(conversation) == []


def test_the_log_says_who_did_what_to_which_message(owner, conversation, reviewer):
    summarise(conversation, 1, 4)
    owner.post(memory_url("message", conversation, seq=3, name="leave-out"))
    owner.post(memory_url("rewrite", conversation, version=1), {"text": "Mine"})
    page = reviewer.get(url_of(conversation), {"tab": "log"}).content.decode()
    text = " ".join(page.partition("<tbody>")[2].split())
    assert "Owner: hid a message from the model" in text
    place = text.index("Owner: hid a message")
    assert text.index("alice", place) < text.index("#3", place) < place + 400


def test_summaries_by_people_can_be_listed(alice, conversation, reviewer):
    summarise(conversation, 1, 2)
    summarise(conversation, 3, 4, author=alice)
    listed = "/admin/memory/summary/?author={}"
    found = {
        name: reviewer.get(listed.format(name)).context["cl"].result_count
        for name in ("person", "automatic")
    }
    assert found == {"person": 1, "automatic": 1}
