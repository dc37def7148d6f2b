"""A conversation of Alice, her browser, and staff with the rights that a test wants."""

from collections import Counter
from math import inf

import pytest
from django.contrib.auth.models import Permission
from django.template import Template
from django.test import Client

from chatsite.contrib.operators.budgets import services
from chatsite.features.importing import worker
from chatsite.features.sharing.pace import pace
from chatsite.live import watcher
from chatsite.pages import parts
from chatsite.turns import commands
from memory import actions, transcript
from tests.memory.scenes import summarise
from tests.remembered import remembered

from .scenes import answer, signed_in, talk_in_turns, url

CODENAMES = {
    "metadata": "view_metadata",
    "content": "read_content",
    "export": "export_conversations",
    "purge": "purge_conversations",
}
REMEMBERED = {"conversation", "versions", "told", "secret"}


@pytest.fixture(autouse=True)
def full_pace():
    """Links are opened from one address by all tests of a process."""
    pace.clear()


@pytest.fixture(autouse=True)
def no_budgets():
    """A process asks for them now and then, which tests that count statements must not
    run into."""
    services.known.none_until = inf
    yield
    services.known.forget()


@pytest.fixture(autouse=True)
def no_import_waits_after_its_test():
    """The sweep of another test would look after it."""
    yield
    while worker.waiting:
        worker.waiting.pop().file.close()


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice, title="Trip to Kyoto")
    talk_in_turns(made, "Hello", "What is my budget?")
    return made


@pytest.fixture
def quick_watcher(monkeypatch):
    """Sockets are looked after at four times the pace, as tests wait for it."""
    for name in ("SESSION_SECONDS", "LOOK_SECONDS", "SILENCE_SECONDS"):
        monkeypatch.setattr(watcher, name, getattr(watcher, name) / 4)


@pytest.fixture
def client(alice):
    return signed_in(alice)


@pytest.fixture
def session(alice):
    client = Client()
    client.force_login(alice)
    return client.cookies["sessionid"].value


@pytest.fixture
@remembered
def source(bob):
    """A conversation of Bob with everything that an export can hold."""
    made = transcript.create_conversation(bob, title="Kyoto", system_prompt="Be brief.")
    talk_in_turns(made, "One", "Two")
    first = summarise(made, 1, 2)
    talk_in_turns(made, "Three", "Four")
    summarise(made, 1, 4, replaces=[first], flags={"unsupported": ["1300"]})
    actions.pin_message(made, 2)
    actions.exclude_messages(made, [6])
    commands.edit_message(made, seq=7, text="Four, better", client_id="better")
    answer(made, "A better reply")
    talk_in_turns(made, "Five")
    commands.regenerate_reply(made, made.turns.order_by("pk").last().pk)
    commands.stop_turn(made, made.turns.order_by("pk").last().pk)
    return made


@pytest.fixture
def exported(client, source):
    """Return the export as a file: through JSON."""
    return signed_in(source.owner).get(url("export-json", source)).json()


@pytest.fixture
def staff_with(django_user_model, request):
    """staff_with("metadata", "content") -> one of the staff who may do just that."""
    # Remembered rows come first: no two of the staff are alike, and beside other rows
    # they would be made again.
    for name in REMEMBERED.intersection(request.fixturenames):
        request.getfixturevalue(name)

    def make(*rights):
        name = "-".join(["staff", *rights])
        user = django_user_model.objects.create_user(name, is_staff=True)
        codenames = [CODENAMES[right] for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return user

    return make


@pytest.fixture
def reviewer(client, staff_with):
    """A client of a staff member who may see numbers and read texts."""
    client.force_login(staff_with("metadata", "content"))
    return client


@pytest.fixture
def rendered(monkeypatch):
    """Count how often each template was rendered since a test began."""
    counts = Counter()
    render = Template._render

    def counted(self, context):
        counts[self.name] += 1
        return render(self, context)

    monkeypatch.setattr(Template, "_render", counted)
    parts.cache.clear()
    return counts
