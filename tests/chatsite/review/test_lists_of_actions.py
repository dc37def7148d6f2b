"""The lists of reviews and of tombstones: found, read, never changed."""

import uuid

import pytest
from django.urls import reverse
from django.utils import timezone

from chatsite.review.models import Review, Tombstone

HOSTILE = "<script>alert(1)</script> {{ 7|add:7 }}"


@pytest.fixture
def rows(conversation, staff):
    review = Review.objects.create(
        conversation=conversation, user=staff, username="staff", version=2,
        last_seq=8, memory_version=0, note=HOSTILE,
    )  # fmt: skip
    stone = Tombstone.objects.create(
        conversation=uuid.UUID(int=7), messages=8, summaries=1, model_calls=5, turns=4,
        sha256="a" * 64, begun_at=timezone.now(), username="eraser", reason=HOSTILE,
    )  # fmt: skip
    return {"review": review, "tombstone": stone}


def get(client, name, act, *args, **params):
    url = reverse(f"admin:desk_{name}_{act}", args=args)
    response = client.get(url, params)
    assert response.status_code == 200
    return response.content.decode()


def test_they_show_hostile_words_as_words(reviewer, rows):
    for name, row in rows.items():
        for text in (
            get(reviewer, name, "changelist"),
            get(reviewer, name, "change", row.pk),
        ):
            assert "<script>alert" not in text
            assert 'name="_save"' not in text
        assert "&lt;script&gt;alert(1)" in text


def test_notes_are_for_those_who_may_read(client, staff_with, rows):
    client.force_login(staff_with("metadata"))
    for act, args in (("changelist", []), ("change", [rows["review"].pk])):
        text = get(client, "review", act, *args)
        assert "#8, v2" in text
        assert "alert(1)" not in text


def test_tombstones_are_found_by_id_and_by_who_erased(reviewer, rows):
    for query in (str(uuid.UUID(int=7)), "eraser"):
        assert "aaaaaaaaaaaa…" in get(reviewer, "tombstone", "changelist", q=query)
    for query in ("eras", HOSTILE, str(uuid.UUID(int=8))):
        assert "aaaaaaaaaaaa…" not in get(reviewer, "tombstone", "changelist", q=query)


def test_nobody_adds_changes_or_deletes_one(client, staff, rows):
    client.force_login(staff)
    for name, row in rows.items():
        for act, args in (("add", []), ("change", [row.pk]), ("delete", [row.pk])):
            url = reverse(f"admin:desk_{name}_{act}", args=args)
            assert client.post(url, {"post": "yes", "note": "x"}).status_code == 403
        url = reverse(f"admin:desk_{name}_changelist")
        fields = {"action": "delete_selected", "_selected_action": [row.pk]}
        client.post(url, {**fields, "post": "yes"})
        assert type(row).objects.filter(pk=row.pk).exists()
