"""Fixtures that switch on again after a test what it switched off."""

import pytest

from chatsite.contrib.operators.switches import active_switches
from chatsite.contrib.operators.switches.models import SwitchedOff


@pytest.fixture
def switch_off(db):
    def make(kind, name):
        values = {"kind": kind, "name": name, "reason": "Leaks", "username": "root"}
        row = SwitchedOff.objects.create(**values)
        active_switches.read_switches()
        return row

    yield make
    active_switches._off = []


@pytest.fixture
def switch_on():
    def make(row):
        row.delete()
        active_switches.read_switches()

    return make
