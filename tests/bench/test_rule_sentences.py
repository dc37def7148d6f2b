"""The 600 sentences, and what is read of the half that the patterns are tuned on."""

from collections import Counter

import pytest

from bench.memory.rule_sentences import (
    HALVES,
    find_alarms,
    read_sentences,
    score,
    take_half,
)
from memory.evaluation.replay import RecordedConversation, RecordedMessage


def test_the_halves_are_alike_and_share_nothing():
    tuned, kept = map(take_half, HALVES)
    assert sorted(each.text for each in tuned + kept) == sorted(
        each.text for each in read_sentences()
    )
    for half in (tuned, kept):
        labels = Counter((each.language, bool(each.rule)) for each in half)
        assert set(labels.values()) == {75}
        assert len({each.register for each in half}) == 10


@pytest.mark.parametrize("language", ["en", "zh"])
def test_rules_are_found_in_many_wordings(language):
    got = score([each for each in take_half("tuned") if each.language == language])
    assert got.recall >= 0.95
    assert got.precision >= 0.98


def test_text_for_other_readers_has_no_rule():
    said = [
        "Never give up on your dreams, Tom!",
        "Call me when you land, I'll pick you up.",
        "You should always trust your gut.",
        "Keep going, you're doing great!",
        "Let me know if you need any tips.",
        "Don't worry, we always find a way.",
        "别走，咱们再聊会儿。",
        "我以后再也不加班了。",
        "我从来不吃早饭。",
        "班主任说以后手机一律上交。",
        "按规定，所有发票都要盖章。",
        "从那以后，小狐狸每天都在井边等。",
        "教练让我每次训练前都热身。",
        "帮我拟一条通知：本周起一律戴工牌。",
        "你每次都答得很好。",
        "我决定以后都用公制记体重。",
    ]
    messages = [
        RecordedMessage(id=str(n), role="user", content=text)
        for n, text in enumerate(said)
    ]
    assert [*find_alarms([RecordedConversation(id="talk", messages=messages)])] == []
