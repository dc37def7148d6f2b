"""Changes that owners make to their conversations are in the log, from all pages."""

from inspect import iscoroutinefunction

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.urls import get_resolver, reverse

from chatsite.features.rules.views import RULE_STATES
from chatsite.pages import memory_actions
from chatsite.plugins import find_command_readers
from chatsite.protocol.events import READERS
from chatsite.turns import commands
from memory import transcript
from memory.models import Change
from memory.models.change import list_actions
from tests.fakes import own_tools
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ..features.rules.scenes import state_rule
from ..features.tools import calls
from ..scenes import memory_url, signed_in, submit, talk_in_turns, url
from .test_timeline import url_of

pytestmark = pytest.mark.django_db
Action = Change.Action


# Every address to which people post, and every command of the socket: what the log of
# the conversation has of it, or why it has nothing.
LOGGED = {
    "conversation-rename": {"title"},
    "conversation-pin": {"pin-listed"},
    "conversation-unpin": {"unpin-listed"},
    "conversation-archive": {"archive"},
    "conversation-unarchive": {"unarchive"},
    "conversation-delete": {"remove"},
    "conversation-undelete": {"undelete"},
    "conversation-branch": {"branch"},
    "tree-edit": {"branch"},
    "tree-delete": {"remove"},
    "conversation-model": {"model"},
    "conversation-policy": {"policy"},
    "conversation-policy-undo": {"policy"},
    "conversation-compact": {"summarise"},
    "conversation-costs-tools": {"tools"},
    "conversation-example-post": {"example"},
    "conversation-feedback": {"feedback"},
    "conversation-labels": {"label", "unlabel"},
    "several-archive": {"archive"},
    "several-unarchive": {"unarchive"},
    "several-delete": {"remove"},
    "several-undelete": {"undelete"},
    "label-new": {"label"},
    "label-give": {"label"},
    "label-take": {"unlabel"},
    "memory-message": set(memory_actions.MESSAGE_ACTIONS),
    "memory-stop": {"end-summary"},
    "memory-accept": {"accept"},
    "memory-rewrite": {"rewrite"},
    "memory-restore": {"restore"},
    "memory-reinstate": {"reinstate"},
    "memory-set-system-prompt": {"system-prompt"},
    "memory-set-tools": {"tools"},
    "memory-rebuild": {"rebuild"},
    "memory-rule": {"keep", *RULE_STATES},
    "memory-rule-reword": {"reword"},
    "memory-fact": {"remember", "remember-here", "not-remember", "offer-fact"},
    "memory-fact-reword": {"reword-fact"},
    "endpoint-join": {"join"},
    "endpoint-separate": {"separate"},
    "share-create": {"share"},
    "share-revoke": {"revoke"},
    "call-answer": {"allow", "refuse"},
    "call-cancel": {"cancel-call"},
    "consent": {"allow", "refuse"},
    "cancel_call": {"cancel-call"},
    "trial-next": {"trial_next"},
    "trial-next-forget": {"trial_forget"},
    "trial-reply": {"branch"},
    "import": {"import"},
    "edit": {"edit"},
    "retry": {"regenerate"},
    "regenerate": {"regenerate"},
    "stop": {"stop"},
}
NOT_LOGGED = {
    "a request to a model, which the log has by itself": {
        *("memory-propose", "trials-start", "trials-ask", "examples-answers"),
    },
    "is in the references of each request that it changes": {
        *("memory-switch", "memory-switches-keep", "memory-switches-undo"),
    },
    "ends what that request was for, and changes nothing": {
        *("memory-end-job", "trial-stop", "examples-cancel"),
    },
    "begins the conversation, or says something in it": {
        *("conversation-create", "conversation-demo", "send"),
    },
    "changes nothing": {
        *("memory-estimate", "memory-draft", "sync", "watch_trial", "seen"),
        *("label-rename", "label-delete", "several-keep-deleted"),
    },
    "is not in a conversation yet": {
        "attachment-upload",
        "attachment-reading",
        "attachment-remove",
    },
    "of a reader of a link, of whom nothing is kept": {"quiz-guess", "try-copy"},
    "of staff": {"site-settings"},
    "of the account": {
        *("api-key-make", "api-key-revoke", "account"),
        *(
            "account-enter",
            "account-sign-out",
            "device-log-out",
            "fact-change",
            "account-delete",
            "signin-email",
            "signin-link",
        ),
        *("signin-forgotten", "login", "logout", "signup", "password-change"),
        *("theme", "language"),
    },
}


def find_acts():
    """The names of all addresses outside the admin that take a POST."""
    todo, found = [(get_resolver(), ())], set()
    while todo:
        part, names = todo.pop()
        names = (*names, *part.pattern.converters)
        for inner in getattr(part, "url_patterns", ()):
            if getattr(inner, "namespace", None) != "admin":
                todo.append((inner, names))
        is_staff = getattr(getattr(part, "callback", None), "needs", None) is not None
        if getattr(part, "name", None) and not is_staff and takes_post(part, names):
            found.add(part.name)
    return found


def takes_post(pattern, names):
    request = RequestFactory().put("/")
    request.user, request.htmx = AnonymousUser(), False
    view = pattern.callback
    view = async_to_sync(view) if iscoroutinefunction(view) else view
    answer = view(request, **dict.fromkeys(names))
    allowed = answer.headers.get("Allow", "")
    return answer.status_code != 405 or "POST" in allowed


def test_each_act_is_in_the_log_or_has_a_reason():
    acts = find_acts() | READERS.keys() | find_command_readers().keys()
    reasons = [name for names in NOT_LOGGED.values() for name in names]
    assert set(reasons).isdisjoint(LOGGED)
    assert sorted(acts - {*LOGGED, *reasons}) == []
    assert sorted({*LOGGED, *reasons} - acts) == []


def test_each_code_in_the_log_has_a_name_and_an_act():
    codes = {code for codes in LOGGED.values() for code in codes}
    assert codes == {str(code) for code, _name in list_actions()}


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


def test_changes_of_the_whole_conversation_are_recorded(owner, conversation):
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


@pytest.mark.parametrize(
    ("name", "action"),
    [
        *(("pin", "pin-listed"), ("unpin", "unpin-listed"), ("archive", "archive")),
        *(("unarchive", "unarchive"), ("delete", "remove"), ("compact", "summarise")),
    ],
)
def test_changes_in_the_list_are_recorded(owner, conversation, name, action):
    owner.post(url(name, conversation))
    assert recorded(conversation) == [(action, None, None)]


def test_changes_of_several_conversations_are_recorded(owner, conversation):
    done = {"archive": "archive", "unarchive": "unarchive", "delete": "remove"}
    done |= {"undelete": "undelete"}
    for name in done:
        owner.post(reverse(f"several-{name}"), {"conversation": [conversation.uuid]})
    owner.post(url("delete", conversation))
    owner.post(url("undelete", conversation))
    assert [action for action, *_rest in recorded(conversation)] == [
        *done.values(),
        "remove",
        "undelete",
    ]


def test_the_labels_it_gets_and_loses(owner, conversation):
    chosen = {"conversation": [conversation.uuid]}
    owner.post(reverse("label-new"), {**chosen, "name": "Trips"})
    label = conversation.labels.get()
    owner.post(reverse("label-take", args=[label.pk]), chosen)
    owner.post(reverse("label-give", args=[label.pk]), chosen)
    address = url("labels", conversation)
    owner.post(address, {"had": [label.pk]})
    owner.post(address, {"had": [label.pk], "on": [label.pk]})
    actions = [action for action, *_rest in recorded(conversation)]
    assert actions == ["label", "unlabel", "label", "unlabel"]


def test_a_stopped_reply_once(conversation):
    turn = submit(conversation, "Go on").turn
    for _again in range(2):
        commands.stop_turn(conversation, turn.pk)
    assert recorded(conversation) == [("stop", turn.reply_seq, None)]


def test_summaries_that_are_stopped_and_a_message_sent_as_always(owner, conversation):
    owner.post(memory_url("stop", conversation))
    owner.post(reverse("trial-next-forget", args=[conversation.uuid]))
    actions = [action for action, *_rest in recorded(conversation)]
    assert actions == ["end-summary", "trial_forget"]


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


def test_refused_changes_are_not_recorded(owner, conversation):
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
