"""People chat, look and click while the site is upgraded, as docs/deploy.md says: from
this release to itself. bench/upgrades.py does it from 0.1.0, and with more rows.
"""

import psycopg
import pytest

from bench import upgrades
from tests.patience import wait_for

pytestmark = [pytest.mark.server, pytest.mark.database("postgresql")]
BREAK = "ALTER TABLE memory_conversation RENAME COLUMN {} TO {}"


@pytest.fixture(scope="module")
def prepared():
    with upgrades.prepared_upgrades(upgrades.NEW) as made:
        yield made


def test_upgrade_has_no_visible_faults(prepared):
    seen = prepared.run(people=1)
    assert upgrades.find_faults(seen) == {}
    assert seen["messages"] > 5
    assert seen["pages"][200] > 20


def test_pages_that_fail_are_seen(prepared):
    with prepared.running(people=1) as (site, people):
        url = site.processes[0].env["DATABASE_URL"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(BREAK.format("title", "other"))
            wait_for(lambda: list_failed(people), 30, "a page that fails")
            connection.execute(BREAK.format("other", "title"))
        people.leave()
    assert any(status >= 500 for status, _address in list_failed(people))


def list_failed(people):
    return [each for visit in people.visits for each in visit.failed]
