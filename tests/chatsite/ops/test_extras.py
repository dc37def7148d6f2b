"""Apps of contrib: which are on, what they cost while they are off, and what is said
where the database has rows of one that is off.
"""

import json
import logging
import subprocess
import sys
from itertools import chain

import pytest
from django.apps import apps
from django.conf import settings
from django.utils.timezone import now

from chatsite.contrib.lab.examples.models import Example
from chatsite.contrib.operators.budgets.models import Budget
from chatsite.contrib.operators.switches.models import SwitchedOff
from chatsite.environment import SiteEnv
from chatsite.ops import checks, extras
from chatsite.ops.management.commands import doctor

from ...servers import ROOT, Site


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("lab, endpoint", ["endpoint", "lab"]),
        ("all", [*settings.CONTRIB]),
    ],
)
def test_extras_are_read_in_one_order(monkeypatch, text, expected):
    monkeypatch.setenv("EXTRAS", text)
    env = SiteEnv()
    assert env.some_of("EXTRAS", settings.CONTRIB) == expected
    assert env.problems == []


def test_an_unknown_extra_is_refused_with_those_there_are(monkeypatch):
    monkeypatch.setenv("EXTRAS", "lab,labs")
    env = SiteEnv()
    assert env.some_of("EXTRAS", settings.CONTRIB) == []
    [problem] = env.problems
    assert "EXTRAS is 'lab,labs'" in problem
    assert ", ".join(settings.CONTRIB) in problem


LOADED = """
import json, sys, django
django.setup()
import chatsite.asgi
print(json.dumps([name for name in sys.modules if name.startswith("chatsite.contrib")]))
"""


@pytest.mark.parametrize("extra", [*settings.CONTRIB])
def test_an_app_that_is_off_is_not_imported(extra):
    others = ",".join(name for name in settings.CONTRIB if name != extra)
    env = Site({"DATABASE_URL": "sqlite://", "EXTRAS": others}).environment()
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    off = [name for name in loaded if name.startswith(f"chatsite.contrib.{extra}")]
    assert off == []
    assert len(loaded) > len(settings.CONTRIB) - 1


def test_a_new_site_without_extras_has_none_of_their_tables(tmp_path):
    site = Site({"DATABASE_URL": f"sqlite:///{tmp_path / 'db'}", "EXTRAS": ""})
    site.manage("migrate", "--verbosity", "0")
    assert "extras" in (checks := site.manage("doctor"))
    assert "which EXTRAS does not name" not in checks
    shown = (
        "from django.db import connection as c; print(c.introspection.table_names())"
    )
    tables = site.manage("shell", "--no-imports", "-c", shown)
    assert "'memory_label'" in tables
    # Two tables are older than their apps.
    names = {*chain(*extras.TABLES.values())} - {"desk_experiment", "signin_membership"}
    assert [name for name in names if f"'{name}'" in tables] == []


def test_the_tables_are_those_of_the_apps():
    of_apps = {
        model._meta.db_table
        for config in apps.get_app_configs()
        if config.name.startswith("chatsite.contrib")
        for model in config.get_models()
    }
    assert {name for names in extras.TABLES.values() for name in names} <= of_apps
    with_tables = {
        name
        for name, paths in settings.CONTRIB.items()
        if any(
            [*apps.get_app_config(path.rpartition(".")[2]).get_models()]
            for path in paths
        )
    }
    assert with_tables == {*extras.TABLES}


@pytest.fixture
def example(conversation):
    message = conversation.messages.last()
    by = {"author": conversation.owner, "label": "good"}
    return Example.objects.create(conversation=conversation, message=message, **by)


def test_rows_of_an_app_that_is_off_are_named(example, settings, caplog):
    assert extras.describe_unnamed_extras() == ""
    settings.EXTRAS = ["operators"]
    expected = (
        "The database has rows of lab, which EXTRAS does not name: they are kept "
        "and not shown. Set EXTRAS=lab,operators to have them back."
    )
    assert extras.describe_unnamed_extras() == expected
    assert doctor.show_extras() == expected
    with caplog.at_level(logging.WARNING):
        extras.check_unnamed_extras()
    assert caplog.messages == [expected]


def test_settings_of_an_app_that_is_off_are_named(settings):
    settings.WEB_SEARCH = "http://searxng:8080"
    assert [*checks.check_extras()] == []
    settings.EXTRAS = ["lab"]
    [warning] = checks.check_extras()
    assert warning.msg == ("WEB_SEARCH is set, and EXTRAS lacks web, which reads it.")


@pytest.mark.parametrize("is_on", [False, True])
def test_start_is_refused_where_a_switch_would_not_hold(db, settings, caplog, is_on):
    row = SwitchedOff.objects.create(kind="model", name="gpt-*", reason="Leaks")
    if is_on:
        # The log of what was switched off is no limit.
        SwitchedOff.objects.filter(pk=row.pk).update(on_at=now())
    assert extras.find_lost_limits() == ""
    settings.EXTRAS = ["lab"]
    if is_on:
        extras.check_unnamed_extras()
        assert "rows of operators" in caplog.text
        return
    with pytest.raises(doctor.DoctorError, match="Add operators to EXTRAS"):
        doctor.show_extras()
    with pytest.raises(SystemExit, match="Add operators to EXTRAS"):
        extras.check_unnamed_extras()


def test_start_is_refused_where_a_budget_would_not_hold(bob, settings):
    Budget.objects.create(user=bob, amount=5)
    settings.EXTRAS = []
    with pytest.raises(SystemExit, match="they would hold no more"):
        extras.check_unnamed_extras()
