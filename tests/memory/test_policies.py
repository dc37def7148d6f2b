"""A stored policy that is not valid, by hand in SQL or from another release."""

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from memory import actions, context, transcript
from memory.compaction import compactor
from memory.engine.policy import Policy
from memory.integrity import audit
from tests.remembered import remembered

from .scenes import Recorder, add_turns, plant

pytestmark = pytest.mark.django_db
BROKEN = [
    {"preset": "gone"},
    {"keep": 3},
    {"trigger": ["fraction", 1.5]},
    {"setting_of_a_later_release": 1},
    [],
    "layered",
    7,
]


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice)
    add_turns(made, 3)
    return made


@pytest.fixture(params=BROKEN, ids=str)
def broken(request, conversation):
    plant(conversation, policy=request.param)
    conversation.refresh_from_db()
    return conversation


def test_the_default_policy_is_in_force_instead(broken):
    assert broken.get_policy() == Policy()
    assert broken.policy_error


def test_the_context_of_a_reply_is_built_and_proved(broken):
    message, _ = transcript.append_user_message(broken, text="Hi", client_id="hi")
    built = context.build_request_context(broken, newest=message)
    assert built.wire[-1]["content"] == "Hi"
    assert len(built.wire) == 8


@pytest.mark.django_db(transaction=True)
def test_compaction_goes_on(conversation):
    plant(conversation, policy={"preset": "gone"})
    summariser = compactor.Summariser("m", Recorder())
    outcome = async_to_sync(compactor.compact_conversation)(
        conversation.pk, summariser, force=True
    )
    assert outcome.state == "folded"


def test_audit_names_the_invalid_policy(broken):
    (violation,) = audit.find_bad_policies()
    assert violation.code == "policy"


def test_admin_shows_the_invalid_policy(broken, client, staff):
    client.force_login(staff)
    pages = [("changelist", []), ("change", [broken.pk])]
    for page, args in pages:
        url = reverse(f"admin:memory_conversation_{page}", args=args)
        assert "not valid" in client.get(url).content.decode().lower()


def test_user_can_set_another_policy(broken):
    actions.set_policy(broken, {"preset": "langgraph"})
    broken.refresh_from_db()
    assert broken.policy_error == ""
    assert broken.get_policy().preset == "langgraph"


def test_valid_policy_is_no_error(conversation):
    conversation.policy = {"preset": "guide"}
    assert conversation.policy_error == ""
    assert conversation.get_policy().preset == "guide"
