"""Named days of our own, in forty forms of each language."""

import pytest

from bench.memory import day_forms


@pytest.mark.parametrize("language", ["en", "zh"])
def test_named_days_are_found(language):
    cases = [*day_forms.make_days(language)]
    assert len(cases) == 200
    assert sum(day_forms.is_found(*case) for case in cases) >= 186
    assert day_forms.count_alarms(language) <= 1
