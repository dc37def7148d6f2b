"""Rows of apps that are off: left out by exports, refused by imports."""

import json

import pytest
from django.urls import reverse

from chatsite import plugins
from chatsite.contrib.lab.examples.services import mark_example
from chatsite.contrib.lab.trials.models import Trial
from chatsite.contrib.operators.budgets.models import MonthlyUse
from chatsite.features.importing import tables, thread_format
from chatsite.features.importing.exporting.thread import dump_export, export_thread
from memory import transcript
from tests.memory.scenes import say

from .test_importing import post, take

pytestmark = pytest.mark.django_db
LAB = ("examples", "trials")


def export(conversation):
    return json.loads(dump_export(export_thread(conversation)))


@pytest.fixture
def source(alice):
    made = transcript.create_conversation(alice, title="Orders")
    say(made, "Hello")
    reply = made.messages.get(seq=2)
    mark_example(made, 2, alice, "good")
    Trial.objects.create(conversation=made, message=reply, model="m", state="done")
    return made


@pytest.fixture
def file(source):
    return export(source)


@pytest.fixture
def without_lab(settings, monkeypatch):
    """A site whose EXTRAS do not name it, as a process of it sees the files."""
    kept = [each for each in plugins.app_data if each.name not in LAB]
    monkeypatch.setattr(tables, "app_data", kept)
    settings.EXTRAS = ["endpoint"]
    thread_format.build_thread_state.cache_clear()
    yield
    thread_format.build_thread_state.cache_clear()


def test_import_names_lists_of_an_app_that_is_off(bob, file, without_lab):
    assert (len(file["examples"]), len(file["trials"])) == (1, 1)
    outcome = take(bob, file)
    assert len(outcome.imported) == 1
    [said] = outcome.notices
    assert "examples (1), trials (1)" in said
    assert "EXTRAS: lab" in said


def test_import_names_lists_that_are_unknown(bob, source):
    [said] = take(bob, export(source) | {"wonders": [{}, {}]}).notices
    assert "wonders (2)" in said
    assert "EXTRAS" not in said


def test_import_of_a_file_that_is_understood_names_nothing(bob, source):
    assert take(bob, export(source)).notices == []


def test_export_counts_the_rows_of_an_app_that_is_off(alice, bob, source, settings):
    mark_example(source, 2, bob, "wrong", "Of staff")
    assert export(source)["left_out"] == {}
    settings.EXTRAS = ["endpoint"]
    assert export(source)["left_out"] == {"examples": 1, "trials": 1}


def test_import_repeats_what_a_file_was_written_without(client, bob, source, settings):
    settings.EXTRAS = []
    file = export(source)
    del file["examples"], file["trials"]
    settings.EXTRAS = ["lab"]
    client.force_login(bob)
    page = post(client, file)
    assert "does not contain what was turned off" in page
    assert "examples (1), trials (1)" in page


def test_account_page_names_what_is_left_out(client, alice, source, settings):
    MonthlyUse.objects.create(user=alice, month="2026-11-01")
    client.force_login(alice)
    page = reverse("account")
    assert "Left out" not in client.get(page).content.decode()
    settings.EXTRAS = []
    shown = client.get(page).content.decode()
    assert "examples (1), trials (1), monthly_use (1)" in shown


@pytest.mark.django_db(transaction=True)
async def test_download_counts_what_is_left_out(async_client, alice, source, settings):
    settings.EXTRAS = []
    await async_client.aforce_login(alice)
    answer = await async_client.get(reverse("account-export"))
    file = json.loads(b"".join([part async for part in answer.streaming_content]))
    assert file["left_out"] == {}
    assert file["conversations"][0]["left_out"] == {"examples": 1, "trials": 1}
