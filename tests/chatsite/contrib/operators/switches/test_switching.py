"""Switches: their users, their log, and the time until processes know them."""

import pytest
from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction
from django.urls import reverse

from chatsite import plugins
from chatsite.contrib.operators.switches import active_switches
from chatsite.contrib.operators.switches.models import SwitchedOff, fits_names
from chatsite.review.models import AccessEvent

from ....scenes import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("switch_off")]
ADD = "/admin/switches/switchedoff/add/"
LIST = "/admin/switches/switchedoff/"


@pytest.fixture
def switcher(staff_with):
    """The browser of one of the staff who may switch, and no more."""
    user = staff_with()
    user.user_permissions.add(Permission.objects.get(codename="switch"))
    return signed_in(user)


def post_off(client, **values):
    form = {"kind": "model", "name": "gpt-5.4", "reason": "It leaks.", **values}
    return client.post(ADD, form, follow=True)


def post_on(client, row, reason="It is mended."):
    target = reverse("admin:switches_switchedoff_change", args=[row.pk])
    return client.post(target, {"on_reason": reason}, follow=True)


def is_off(name="gpt-5.4"):
    return plugins.is_switched_off("model", name)


def test_off_and_on_again(switcher, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        post_off(switcher)
    row = SwitchedOff.objects.get()
    assert (row.name, row.reason, row.username) == ("gpt-5.4", "It leaks.", "staff")
    assert is_off()
    assert not is_off("gpt-5.4-mini")
    assert not plugins.is_switched_off("tool", "gpt-5.4")
    with django_capture_on_commit_callbacks(execute=True):
        post_on(switcher, row)
    row.refresh_from_db()
    assert (row.on_reason, row.on_username) == ("It is mended.", "staff")
    assert row.on_at > row.created_at
    assert not is_off()
    events = AccessEvent.objects.order_by("pk").values_list("action", "target")
    assert list(events) == [
        ("switch", "off model gpt-5.4"),
        ("switch", "on model gpt-5.4"),
    ]


def test_staff_read_it_in_the_access_log(switcher, staff_with):
    post_off(switcher)
    reader = signed_in(staff_with("metadata"))
    log = reader.get("/admin/desk/accessevent/").text
    assert "switched off or on" in log
    assert "off: model gpt-5.4" in log
    page = reader.get(LIST).text
    assert "It leaks." in page
    assert reader.get(ADD).status_code == 403


def test_users_without_the_right_cannot_switch(staff_with, client):
    reader = signed_in(staff_with("metadata"))
    assert post_off(reader).status_code == 403
    assert post_off(client).redirect_chain  # to the form of staff
    row = SwitchedOff.objects.create(kind="model", name="m", reason="r", username="u")
    assert post_on(reader, row).status_code == 403
    row.refresh_from_db()
    assert row.on_at is None
    assert not AccessEvent.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"reason": " "}, "This field is required."),
        ({"name": ""}, "This field is required."),
        ({"kind": "person"}, "Select a valid choice"),
        ({"reason": "x" * 301}, "at most 300 characters"),
        ({"name": "m\x00"}, "Null characters"),
    ],
)
def test_form_explains_errors(switcher, wrong, said):
    assert said in post_off(switcher, **wrong).text
    assert not SwitchedOff.objects.exists()


def test_a_reason_is_needed_to_switch_on(switcher, switch_off):
    row = switch_off("model", "gpt-5.4")
    assert "This field is required." in post_on(switcher, row, "").text
    assert is_off()


def test_once_is_enough(switcher):
    post_off(switcher)
    assert "It is switched off already." in post_off(switcher).text
    [row] = SwitchedOff.objects.all()
    values = {"kind": row.kind, "name": row.name, "reason": "r", "username": "u"}
    with pytest.raises(IntegrityError), transaction.atomic():
        SwitchedOff.objects.create(**values)
    post_on(switcher, row)
    assert post_on(switcher, row).status_code == 403
    post_off(switcher)
    assert SwitchedOff.objects.count() == 2


def test_an_unknown_name_is_warned_of(switcher, settings):
    settings.CHAT_MODEL = "gpt-5.4"
    assert "nothing with that name" not in post_off(switcher).text
    assert "nothing with that name" in post_off(switcher, name="gpt-4-o").text
    assert (
        "nothing with that name"
        not in post_off(switcher, kind="tool", name="calc*").text
    )


def test_the_form_suggests_names(switcher, settings):
    settings.CHAT_MODEL = "gpt<4>"
    page = switcher.get(ADD).text
    assert '<option value="gpt&lt;4&gt;">' in page
    assert '<option value="calculate">' in page


def test_rows_are_not_deleted(admin_client, switch_off):
    row = switch_off("model", "m")
    target = reverse("admin:switches_switchedoff_delete", args=[row.pk])
    assert admin_client.post(target, {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("names", "name", "fit"),
    [
        ("gpt-5.4", "gpt-5.4", True),
        ("gpt-5.4", "gpt-5.4-2024", False),
        ("gpt-5.4", "GPT-4o", False),
        ("gpt-5.4*", "gpt-5.4-2024", True),
        ("*", "anything", True),
        ("sonnet[1m]", "sonnet[1m]", True),
        ("sonnet[1m]", "sonnet1", False),
        ("m?", "mx", False),
    ],
)
def test_names_fit(names, name, fit):
    assert fits_names(names, name) is fit


@pytest.mark.django_db(transaction=True)
async def test_a_process_that_runs_finds_it_within_five_seconds(monkeypatch):
    assert active_switches.LOOK_SECONDS + 1 < 5
    values = {"kind": "model", "name": "m", "reason": "r", "username": "u"}
    await SwitchedOff.objects.acreate(**values)
    monkeypatch.setattr(active_switches, "_next_look", 0.0)
    await active_switches.read_when_due()
    assert is_off("m")
    await SwitchedOff.objects.all().adelete()
    await active_switches.read_when_due()
    assert is_off("m")
    monkeypatch.setattr(active_switches, "_next_look", 0.0)
    await active_switches.read_when_due()
    assert not is_off("m")


def test_pages_and_turns_do_not_query_switches(client, django_assert_max_num_queries):
    client.get("/")
    with django_assert_max_num_queries(40) as ran:
        client.get("/")
    assert not [sql for sql in ran.captured_queries if "switch" in sql["sql"]]
