"""Apps taken out before their tables: what these still have goes with the
conversation and the person that it belongs to.
"""

import json

import pytest
from django.conf import settings

from .servers import Site

pytestmark = pytest.mark.server


def test_rows_of_apps_that_are_gone_go_with_what_they_belong_to(new_database):
    with new_database() as url:
        planted = run_left_rows({"DATABASE_URL": url}, "plant")
        assert all(planted.values())
        without = {
            "DJANGO_SETTINGS_MODULE": "tests.without_apps",
            "WITHOUT": ",".join(settings.OPTIONAL_APPS),
        }
        one, both = run_left_rows({"DATABASE_URL": url, **without}, "erase")
    of_alice = {"memory_label": 1, "memory_upload": 1, "desk_experiment": 2}
    assert one == {name: of_alice.get(name, planted[name] // 2) for name in planted}
    # The one that she has started with another person's conversation.
    assert both == dict.fromkeys(planted, 0) | {"desk_experiment": 1}


def run_left_rows(env, deed):
    code = f"from tests import left_rows; left_rows.{deed}()"
    printed = Site(env).manage("shell", "--no-imports", "-c", code)
    return json.loads(printed.splitlines()[-1])
