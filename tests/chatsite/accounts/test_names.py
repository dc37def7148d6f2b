"""Names and addresses that look alike."""

import contextlib
import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from chatsite.accounts.names import find_people, find_twins, make_name_keys

pytestmark = pytest.mark.django_db


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
    names = ["anna", "hanna", "bob", "rob", "李明", "李朋", "user-2", "user-3", "zoe"]
    keys = [key for name in names for key in make_name_keys(name)]
    assert len(set(keys)) == len(names)


def test_doctor_names_accounts_that_look_alike():
    for name in ("mike", "anna", "mіke", "MIKE"):
        make(name)
    assert list(find_twins()) == [("mike", "mіke"), ("mike", "MIKE")]
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("doctor", stdout=out)
    assert "these look alike: 'mіke' and 'mike', 'MIKE' and 'mike'" in out.getvalue()
