"""Apps taken out before their tables: their rows are deleted with their owner.

That is the conversation or the user that a row belongs to.
"""

import json

import pytest
from django.conf import settings

from .servers import Site

pytestmark = pytest.mark.server
OF_PERSON = (
    *("memory_label", "memory_upload", "endpoint_apikey", "budgets_budget"),
    "budgets_monthlyuse",
)
OF_OTHERS = (
    *("desk_experiment", "endpoint_clientconversation", "endpoint_clientrequest"),
    *("endpoint_bodypiece", "endpoint_providersummary"),
)


def test_rows_of_apps_that_are_gone_go_with_what_they_belong_to(new_database):
    with new_database() as url:
        planted = run_left_rows({"DATABASE_URL": url}, "plant")
        assert all(planted.values())
        without = {
            "DJANGO_SETTINGS_MODULE": "tests.without_apps",
            "WITHOUT": ",".join(settings.OPTIONAL_APPS),
        }
        one, both = run_left_rows({"DATABASE_URL": url, **without}, "erase")
    of_alice = dict.fromkeys(OF_PERSON, 1) | dict.fromkeys(OF_OTHERS, 2)
    assert one == {name: of_alice.get(name, planted[name] // 2) for name in planted}
    # What she has begun with another user's conversation, or her key has sent there.
    assert both == dict.fromkeys(planted, 0) | dict.fromkeys(OF_OTHERS, 1)


def test_rows_of_apps_that_are_gone_go_with_a_deleted_message(new_database):
    """Rows of missing apps may have words of the message, and these apps cannot delete
    them.
    """
    with new_database() as url:
        planted = run_left_rows({"DATABASE_URL": url}, "plant")
        without = {"EXTRAS": "endpoint", "DATABASE_URL": url}
        left = run_left_rows(without, "delete_message")
    of_lab = ("examples_example", "examples_exampleanswer")
    assert [left[name] for name in of_lab] == [planted[name] // 2 for name in of_lab]
    assert left["desk_experiment"] == planted["desk_experiment"] - 1
    # Of apps that are there, each decides.
    assert left["chat_share"] == planted["chat_share"]


def test_rows_of_apps_that_are_gone_go_with_a_group_or_a_person(new_database):
    with new_database() as url:
        planted = run_left_rows({"DATABASE_URL": url}, "plant")
        with_group = run_left_rows({"DATABASE_URL": url}, "plant_group")
        assert with_group["budgets_budget"] == planted["budgets_budget"] + 1
        without = {"EXTRAS": "", "DATABASE_URL": url}
        left = run_left_rows(without, "delete_past_the_pages")
    assert left == dict.fromkeys(planted, 0)


def run_left_rows(env, deed):
    code = f"from tests import left_rows; left_rows.{deed}()"
    printed = Site(env).manage("shell", "--no-imports", "-c", code)
    return json.loads(printed.splitlines()[-1])
