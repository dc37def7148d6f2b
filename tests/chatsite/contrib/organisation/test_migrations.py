"""Migrations of the table of memberships, which has had two apps."""

import pytest

from ....servers import Site

pytestmark = pytest.mark.server
COUNT = (
    "from django.db import connection as c; cursor = c.cursor(); "
    "cursor.execute('SELECT provider FROM signin_membership'); print(cursor.fetchall())"
)
PLANT = (
    "from django.contrib.auth import get_user_model as people; "
    "from chatsite.contrib.organisation.models import Membership; "
    "Membership.objects.create(user=people().objects.create(), provider='there')"
)


def test_sites_that_went_back_without_the_app_go_on_with_it(new_database):
    with new_database() as url:
        on, off = (
            Site({"DATABASE_URL": url, "EXTRAS": extras})
            for extras in ("organisation", "")
        )
        on.manage("migrate", "--verbosity", "0")
        on.manage("shell", "--no-imports", "-c", PLANT)
        off.manage("migrate", "signin", "0003", "--verbosity", "0")
        on.manage("migrate", "--verbosity", "0")
        assert "there" in on.manage("shell", "--no-imports", "-c", COUNT)
        on.manage("migrate", "signin", "0003", "--verbosity", "0")
        assert "there" in on.manage("shell", "--no-imports", "-c", COUNT)
        on.manage("migrate", "--verbosity", "0")
