"""Names and addresses that look alike."""

import contextlib
import io
import threading

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.core import serializers
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.accounts import names
from chatsite.accounts.forms import SignupForm
from chatsite.accounts.models import NameKey
from chatsite.accounts.names import (
    digest_name,
    find_free_names,
    find_people,
    find_twins,
    make_name_keys,
)

pytestmark = pytest.mark.django_db


SECRET = "correct horse battery"


def fill_form(name):
    return SignupForm({"username": name, "password1": SECRET, "password2": SECRET})


def make(name, email=""):
    return get_user_model().objects.create(username=name, email=email)


@pytest.mark.parametrize(
    "typed",
    [
        "m\u0131ke.sims@example.org",
        "mike.\u017fims@example.org",
        "mi\u212ae.sims@example.org",
        "mike.sims@example.org.evil.test",
        "mike_sims@example.org",
        "",
    ],
)
def test_addresses_of_other_letters_find_no_one(typed):
    make("mike", "mike.sims@example.org")
    assert find_people(typed) == []


def test_addresses_are_found_in_either_case():
    mike = make("mike", "Mike.Sims@Example.org")
    make("gone", "mike.sims@example.org").delete()
    assert find_people("mike.SIMS@example.org") == [mike]
    second = make("second", "MIKE.SIMS@example.org")
    assert find_people("mike.sims@example.org") == [mike, second]
    second.is_active = False
    second.save()
    assert find_people("mike.sims@example.org") == [mike]


def test_addresses_of_other_scripts_are_their_own():
    person = make("mueller", "müller@example.org")
    assert find_people("müller@example.org") == [person]
    assert find_people("muller@example.org") == []


@pytest.mark.parametrize(
    "name",
    [
        "ΜΙΚΕ",
        "MIKE",
        "mіke",
        "m1ke.admin",
        "rnike.adrnin",
        "m\u0131ke",
        "ｍｉｋｅ",
    ],
)
def test_sign_up_refuses_a_name_that_looks_like_another(name):
    make("mike")
    make("mlke.admin")
    make("mike.admin")
    secret = "correct horse battery"
    fields = {"username": name, "password1": secret, "password2": secret}
    answer = Client().post(reverse("signup"), fields)
    assert answer.status_code == 400
    assert set(answer.context["form"].errors) == {"username"}
    assert get_user_model().objects.count() == 3


@pytest.mark.parametrize("name", ["mi\u3164ke", "\u115fmike", "mike\uffa0"])
def test_sign_up_refuses_invisible_letters(name):
    secret = "correct horse battery"
    fields = {"username": name, "password1": secret, "password2": secret}
    answer = Client().post(reverse("signup"), fields)
    [error] = answer.context["form"].errors["username"]
    assert "can't be seen" in error


@pytest.mark.parametrize(
    "name", ["李明", "mikhail", "мария", "mike2", "zoë", "μαρία", "a.b+c@d_e-f"]
)
def test_sign_up_takes_names_of_all_scripts(name):
    make("mike")
    secret = "correct horse battery"
    fields = {"username": name, "password1": secret, "password2": secret}
    assert Client().post(reverse("signup"), fields).status_code == 302


def test_keys_of_different_names_differ():
    known = ["anna", "hanna", "bob", "rob", "李明", "李朋", "user-2", "user-3", "zoe"]
    keys = [key for name in known for key in make_name_keys(name)]
    assert len(set(keys)) == len(known)


def test_doctor_names_accounts_that_look_alike():
    for name in ("mike", "anna", "mіke", "MIKE"):
        make(name)
    assert list(find_twins()) == [("mike", "mіke"), ("mike", "MIKE")]
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("doctor", stdout=out)
    assert "these look alike: 'mіke' and 'mike', 'MIKE' and 'mike'" in out.getvalue()


@pytest.mark.parametrize("second", ["mіke", "MIKE", "mike"])
def test_sign_up_takes_one_of_two_that_were_checked_before_either_was_made(second):
    forms = [fill_form("mike"), fill_form(second)]
    assert all(form.is_valid() for form in forms)
    made = [form.create_account() for form in forms]
    assert made[0].username == "mike"
    assert made[1] is None
    assert set(forms[1].errors) == {"username"}
    assert get_user_model().objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_sign_up_takes_one_of_many_at_once():
    wished = ["mike", "mіke", "MIKE", "m\u0131ke", "rnike", "mike"]
    ready, codes = threading.Barrier(len(wished)), []

    def sign_up(name):
        fields = {"username": name, "password1": SECRET, "password2": SECRET}
        ready.wait()
        codes.append(Client().post(reverse("signup"), fields).status_code)
        connection.close()

    threads = [threading.Thread(target=sign_up, args=[name]) for name in wished]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(find_twins()) == []
    assert sorted(codes) == [302] + [400] * (len(wished) - 1)


def test_sign_up_reads_few_rows_of_other_accounts():
    for number in range(30):
        make(f"person-{number}")
    form = fill_form("mike")
    with CaptureQueriesContext(connection) as captured:
        assert form.is_valid()
    asked = [query["sql"] for query in captured if "auth_user" in query["sql"]]
    assert all("WHERE" in sql or "LIMIT 1" in sql for sql in asked), asked
    assert len(captured) <= 5


def test_the_name_of_an_account_that_is_gone_is_free_again():
    make("mike").delete()
    assert find_free_names(["mіke"]) == ["mіke"]
    first, twin = make("mike"), make("mіke")
    first.delete()
    assert find_free_names(["MIKE"]) == []
    twin.username = "anna"
    twin.save()
    assert find_free_names(["MIKE", "anna"]) == ["MIKE"]


@pytest.mark.django_db(transaction=True)
def test_an_upgrade_stores_the_keys_of_accounts_that_look_alike():
    people = [make(name) for name in ("mike", "mіke", "anna", "MIKE")]
    before = sorted(NameKey.objects.values_list("user", "key"))
    executor = MigrationExecutor(connection)
    executor.migrate([("accounts", None)])
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert sorted(NameKey.objects.values_list("user", "key")) == before
    firsts = NameKey.objects.filter(is_first=True, key__in=digest_name("mike"))
    assert {row.user for row in firsts} == {people[0]}


def read_keys(name):
    rows = NameKey.objects.filter(user__username=name).order_by("key")
    return [row.key for row in rows if row.made_of == f"{names.VERSION}{name}"]


def make_without_keys(*created):
    """Make users as a process of an older release does, in whatever order
    the ids come.
    """
    rows = [get_user_model()(username=name) for name in created]
    get_user_model().objects.bulk_create(rows)


def test_sign_up_refuses_a_name_like_that_of_an_account_without_keys():
    make_without_keys("mike", "anna")
    make("bob")
    assert find_free_names(["mіke", "ANNA", "zoe"]) == ["zoe"]
    assert read_keys("anna") == digest_name("anna")


def test_sign_up_refuses_a_name_that_was_given_past_the_model():
    make("mike")
    get_user_model().objects.filter(username="mike").update(username="anna")
    assert find_free_names(["MIKE", "ANNA"]) == ["MIKE"]
    assert read_keys("anna") == digest_name("anna")


@pytest.mark.django_db(transaction=True)
def test_loaded_accounts_have_keys(tmp_path):
    user = get_user_model()(pk=77, username="mike", password=make_password(None))
    path = tmp_path / "people.json"
    path.write_text(serializers.serialize("json", [user]))
    call_command("loaddata", path, verbosity=0)
    assert read_keys("mike") == digest_name("mike")
    stored = serializers.serialize("json", [user, *NameKey.objects.all()])
    get_user_model().objects.all().delete()
    path.write_text(stored)
    call_command("loaddata", path, verbosity=0)
    assert read_keys("mike") == digest_name("mike")


def test_saving_one_column_of_a_stale_account_keeps_the_keys():
    stale = make("mike")
    fresh = get_user_model().objects.get()
    fresh.username = "anna"
    fresh.save()
    stale.first_name = "Mike"
    stale.save(update_fields=["first_name"])
    assert read_keys("anna") == digest_name("anna")
    assert find_free_names(["MIKE", "ANNA"]) == ["MIKE"]


@pytest.mark.django_db(transaction=True)
def test_migrate_makes_keys_of_another_version_again(monkeypatch):
    """Keys are made again where another version of the library has other skeletons."""
    with monkeypatch.context() as before:
        before.setattr(names, "VERSION", "older ")
        before.setattr(names, "PROTOTYPES", ())
        people = [make(name) for name in ("rnike", "anna", "mike")]
        old = names.digest_name("rnike")
    assert set(old).isdisjoint(digest_name("rnike"))
    monkeypatch.setattr(names, "BATCH", 2)
    call_command("migrate", verbosity=0)
    for person in people:
        assert read_keys(person.username) == digest_name(person.username)
    assert not NameKey.objects.filter(key__in=old).exists()
    firsts = NameKey.objects.filter(is_first=True, key__in=digest_name("mike"))
    assert firsts.count() == len(digest_name("mike"))


def test_accounts_looked_through_at_a_sign_up_are_bounded(monkeypatch):
    monkeypatch.setattr(names, "LOOKED_THROUGH", 5)
    make_without_keys("mike", *(f"person-{number}" for number in range(5)))
    find_free_names(["zoe"])
    assert read_keys("mike") == []
    assert read_keys("person-4") == digest_name("person-4")
