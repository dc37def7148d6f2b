"""The tools `current_time` and `remind_me`."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from langchain_core.tools import ToolException

from chatsite.features.tools.builtin import clock
from chatsite.features.tools.builtin.clock import (
    current_time,
    look_for_reminder,
    remind_me,
)
from chatsite.features.tools.context import PendingResult, find_zone

from .calls import context_of, run

NOW = datetime(2026, 11, 22, 18, 51, 5, tzinfo=UTC)
BERLIN = context_of(time_zone="Europe/Berlin")


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    monkeypatch.setattr(timezone, "now", lambda: NOW)


def after(monkeypatch, **time):
    monkeypatch.setattr(clock.timezone, "now", lambda: NOW + timedelta(**time))


class TestCurrentTime:
    async def test_time_zone_is_the_users_own(self):
        answer = await run(current_time, BERLIN)
        assert answer.text == "Sunday 2026-11-22 19:51:05 UTC+01:00 (Europe/Berlin)"

    async def test_time_zone_is_the_sites_if_the_users_is_unknown(self, settings):
        settings.TIME_ZONE = "Asia/Shanghai"
        answer = await run(current_time, context_of(time_zone="no/such"))
        assert answer.text == "Monday 2026-11-23 02:51:05 UTC+08:00 (Asia/Shanghai)"

    async def test_time_zone_can_be_an_argument(self):
        answer = await run(current_time, BERLIN, time_zone="America/New_York")
        assert "13:51:05 UTC-05:00" in answer.text

    @pytest.mark.parametrize("name", ["Paris", "../../etc/passwd", "Europe", "\0", "/"])
    async def test_unknown_time_zone_is_refused_with_words(self, name):
        with pytest.raises(ToolException, match="no time zone"):
            await run(current_time, BERLIN, time_zone=name)
        assert find_zone(name) is None


class TestRemindMe:
    async def test_the_handle_is_all_that_is_needed(self, monkeypatch):
        pending = await run(remind_me, BERLIN, text="tea", in_minutes=1)
        assert isinstance(pending, PendingResult)
        assert pending.seconds == 60
        assert "19:52:05" in pending.text
        after(monkeypatch, minutes=1)
        told = await look_for_reminder(pending.handle, BERLIN)
        assert told.startswith("Reminder, asked for on Sunday 2026-11-22 19:51:05")
        assert told.endswith(": tea")

    async def test_asked_too_early_it_still_waits(self, monkeypatch):
        pending = await run(remind_me, BERLIN, text="tea", in_minutes=10)
        after(monkeypatch, minutes=4)
        again = await look_for_reminder(pending.handle, BERLIN)
        assert (again.handle, again.seconds) == (pending.handle, 360)

    async def test_a_time_is_in_the_persons_zone(self):
        pending = await run(remind_me, BERLIN, text="tea", at="2026-11-22T20:00")
        assert pending.handle["due"] == "2026-11-22T19:00:00+00:00"

    async def test_a_time_can_have_a_zone_of_its_own(self):
        at = "2026-11-22T20:00:00-05:00"
        pending = await run(remind_me, BERLIN, text="tea", at=at)
        assert pending.handle["due"] == "2026-11-23T01:00:00+00:00"

    async def test_reminder_outlives_a_long_break_of_the_site(self):
        pending = await run(remind_me, BERLIN, text="tea", in_minutes=1)
        assert pending.deadline == timedelta(days=30, minutes=1).total_seconds()

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"in_minutes": 1, "at": "2026-11-23"},
            {"in_minutes": -1},
            {"in_minutes": 1e300},
            {"in_minutes": float("nan")},
            {"in_minutes": 600_000},
            {"at": "tomorrow"},
            {"at": "2020-01-01"},
            {"at": "0001-01-01T00:00:00+14:00"},
            {"in_minutes": 1, "text": " "},
            {"in_minutes": 1, "text": "x" * 1_001},
        ],
    )
    async def test_impossible_reminder_is_refused_with_words(self, arguments):
        with pytest.raises(ToolException, match=r"\.$"):
            await run(remind_me, BERLIN, **{"text": "tea", **arguments})
