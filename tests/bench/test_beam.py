"""The converter of BEAM, on a chat of the same form."""

import json
from datetime import UTC, datetime

import pytest

from bench.memory import beam
from memory.evaluation.replay import read_recordings


def said(number, role, text, **more):
    return {"id": number, "role": role, "content": text, **more}


CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                said(0, "user", "It takes 300ms. ->-> 1,1", time_anchor="May-02-2024"),
                said(1, "assistant", "I see."),
            ]
        ],
    },
    {
        "batch_number": 2,
        "turns": [
            [said(2, "user", "Now 250ms. ->-> 2,2, 4"), said(3, "assistant", "")]
        ],
    },
]
QUESTIONS = {
    "abstention": [{"question": "Where?", "rubric": []}],
    "event_ordering": [{"question": "In order?", "source_chat_ids": [2, 0, 2]}],
    "knowledge_update": [
        {
            "question": "How long?",
            "answer": "Around 250ms, not 300.",
            "source_chat_ids": {"original_info": [0], "updated_info": [2]},
        }
    ],
}


@pytest.fixture
def recording(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WINDOWPANE_DATA", str(tmp_path))
    for number in (1, 2, 13):
        folder = tmp_path / "BEAM" / "chats" / "100K" / str(number)
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "chat.json").write_text(json.dumps(CHAT))
        questions = folder / "probing_questions" / "probing_questions.json"
        questions.write_text(json.dumps(QUESTIONS))
    monkeypatch.setattr("sys.argv", ["beam"])
    beam.main()
    assert "2 conversations" in capsys.readouterr().out
    file = tmp_path / "beam-100K-odd.json"
    first, last = read_recordings(file.read_bytes())
    assert (first.id, last.id) == ("beam-100K-1", "beam-100K-13")
    return first


def test_conversation_has_no_plan_it_was_written_from(recording):
    texts = [message.content for message in recording.messages]
    assert texts == ["It takes 300ms.", "I see.", "Now 250ms.", ""]
    assert recording.messages[2].created_at == datetime(2024, 5, 2, 9, 2, tzinfo=UTC)


def test_evidence_is_found_in_every_form(recording):
    evidence = [question.evidence_ids for question in recording.qa]
    assert evidence == [[], ["2", "0"], ["0", "2"]]


def test_new_number_is_found(recording):
    asked = recording.qa[2]
    assert (asked.newest_id, asked.newest_value) == ("2", "250")
    assert recording.qa[1].newest_id == ""
