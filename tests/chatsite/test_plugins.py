"""Registries of the core, filled by apps."""

from collections import Counter

import pytest

from chatsite import plugins
from chatsite.features.importing.tables import exported_lists, exported_values
from chatsite.protocol.errors import EXPLANATIONS, explain_code
from chatsite.review.models import list_staff_actions
from memory import actions
from memory.models.change import APP_ACTIONS, list_actions

from .scenes import talk_in_turns


@pytest.fixture
def tables(monkeypatch):
    """A table that is handed over for one test, and what was forgotten of it."""
    forgotten = []

    def forget(**sent):
        forgotten.append((sent["conversation"], sent["seq"], sent["edited"]))

    monkeypatch.setattr(plugins, "app_data", [])
    for names in (APP_ACTIONS, EXPLANATIONS):
        for word in ("stamp", "no_ink"):
            monkeypatch.setitem(names, word, "")
    plugins.register_data(
        forget=forget,
        owner_actions={"stamp": "stamped it"},
        staff_actions={"weigh": "weighed it"},
        errors={"no_ink": "The ink is used up."},
        sources={"paper": "Paper of %s"},
    )
    return forgotten


class TestNames:
    def test_the_words_of_a_table_are_known_to_the_core(self, tables):
        assert ("stamp", "stamped it") in list_actions()
        assert ("weigh", "weighed it") in list_staff_actions()
        assert explain_code("no_ink") == "The ink is used up."

    def test_the_site_of_an_import_is_named_with_what_follows_its_word(self, tables):
        assert plugins.name_source("paper:Delft") == "Paper of Delft"
        assert plugins.name_source("stone:Delft") == ""


@pytest.mark.django_db
def test_a_table_forgets_a_message_that_is_deleted(tables, conversation):
    talk_in_turns(conversation, "Which ink keeps?")
    actions.delete_message(conversation, 2)
    assert [(c.pk, seq) for c, seq, _edited in tables] == [(conversation.pk, 2)]


def test_a_table_has_its_own_name():
    """Two tables of one name would overwrite each other in the file."""
    for of_kind in (
        exported_lists() + exported_values(),
        [data for data in plugins.app_data if data.list_own],
    ):
        counted = Counter(data.name for data in of_kind)
        assert [name for name, count in counted.items() if not name or count > 1] == []


def test_a_table_of_an_export_is_written_as_it_is_read():
    for data in exported_lists() + exported_values():
        assert data.read, data.name
        assert data.write, data.name
        assert data.title or not data.row, data.name


def refuse_blue(conversation):
    return "No more blue." if conversation == "blue" else ""


def test_a_guard_refuses_in_its_words(monkeypatch):
    monkeypatch.setitem(plugins.guards, "send", [])
    plugins.register_guard("send", refuse_blue)
    assert plugins.find_write_refusal("blue") == "No more blue."
    assert plugins.find_write_refusal("red") == ""


@pytest.mark.django_db
def test_a_page_opens_though_a_receiver_fails(client, alice):
    def fail(**sent):
        raise RuntimeError

    client.force_login(alice)
    plugins.page_opened.connect(fail)
    try:
        assert client.get("/account/").status_code == 200
    finally:
        plugins.page_opened.disconnect(fail)
