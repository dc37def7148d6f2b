"""What is switched off in a test is on again after it."""

import pytest

from chatsite.contrib.operators.switches import current
from chatsite.contrib.operators.switches.models import SwitchedOff


@pytest.fixture
def switch_off(db):
    def make(kind, name):
        values = {"kind": kind, "name": name, "reason": "Leaks", "username": "root"}
        row = SwitchedOff.objects.create(**values)
        current.read_switches()
        return row

    yield make
    current._off = []


@pytest.fixture
def switch_on():
    def make(row):
        row.delete()
        current.read_switches()

    return make
