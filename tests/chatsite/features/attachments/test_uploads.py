"""Files between their upload and their message, over HTTP and in the tables."""

import uuid
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, override

from chatsite.features.attachments import processes, reading, uploads, views
from chatsite.features.attachments.errors import FileError
from chatsite.features.attachments.long_files import store
from chatsite.features.attachments.models import LongFile, Upload
from chatsite.ops import load
from memory.transcript import TextError

from ...scenes import signed_in
from . import pdfs

pytestmark = pytest.mark.django_db
UPLOAD = reverse("attachment-upload")
DOUBTFUL = "商品,価格\n机,8000\n".encode("euc_jp")


def post(client, data=b"Hello there.", name="notes.txt", **headers):
    file = SimpleUploadedFile("x", data)
    file._name = name
    return client.post(UPLOAD, {"file": file}, **headers)


def choose(client, pk, encoding):
    address = reverse("attachment-reading", args=(pk,))
    return client.post(address, {"encoding": encoding})


def keep(owner, text="Hello", name="notes.txt", **values):
    return Upload.objects.create(
        owner=owner, name=name, kind="txt", size=5, text=text, tokens=2, **values
    )


@pytest.mark.django_db(transaction=True)
class TestQuestion:
    def test_choice_reads_the_stored_bytes(self, alice):
        client = signed_in(alice)
        asked = post(client, DOUBTFUL, "../a.csv")
        assert asked.status_code == 409
        question = asked.json()
        assert question["error"] == "unsure_encoding"
        assert question["name"] == "a.csv"
        found = {each["encoding"]: each["preview"] for each in question["readings"]}
        assert found["euc_jp"] == "商品,価格"
        row = Upload.objects.get()
        assert (str(row.pk), row.text) == (question["id"], "")
        answer = choose(client, row.pk, "euc_jp")
        assert answer.status_code == 201
        assert answer.json()["encoding"] == "EUC-JP"
        kept = Upload.objects.get()
        assert (kept.name, kept.text) == ("a.csv", DOUBTFUL.decode("euc_jp"))
        assert (kept.data, kept.readings) == (None, None)

    def test_long_text_becomes_a_long_file(self, alice, monkeypatch):
        monkeypatch.setattr(store, "LONG_CHARS", 5)
        client = signed_in(alice)
        asked = post(client, DOUBTFUL).json()
        answer = choose(client, asked["id"], "euc_jp")
        assert answer.status_code == 201
        assert LongFile.objects.get().chars == len(DOUBTFUL.decode("euc_jp"))

    def test_message_does_not_take_what_is_not_read(self, alice):
        asked = post(signed_in(alice), DOUBTFUL, "a.csv").json()
        with pytest.raises(TextError) as caught:
            uploads.take_files(alice.pk, [asked["id"]])
        assert caught.value.code == "unsure_encoding"
        assert "a.csv" in caught.value.detail
        assert Upload.objects.exists()

    def test_choice_that_was_not_offered_is_refused(self, alice):
        client = signed_in(alice)
        asked = post(client, DOUBTFUL).json()
        for encoding in ("", "koi8_r", "unicode_escape"):
            answer = choose(client, asked["id"], encoding)
            assert (answer.status_code, answer.json()["error"]) == (400, "bad_encoding")

    def test_question_is_its_owners(self, alice, bob):
        asked = post(signed_in(alice), DOUBTFUL).json()
        answer = choose(signed_in(bob), asked["id"], "euc_jp")
        assert answer.json()["error"] == "attachment_gone"
        assert choose(Client(), asked["id"], "euc_jp").status_code == 401
        assert Upload.objects.get().text == ""

    def test_choice_is_possible_with_as_many_files_as_there_may_be(
        self, alice, monkeypatch
    ):
        client = signed_in(alice)
        asked = post(client, DOUBTFUL).json()
        monkeypatch.setattr(uploads, "MOST_UNSENT", 1)
        assert post(client, DOUBTFUL).status_code == 429
        assert choose(client, asked["id"], "gb18030").status_code == 201

    def test_language_of_the_page_comes_first(self, alice):
        headers = {"Accept-Language": "ja,en;q=0.5"}
        asked = post(signed_in(alice), DOUBTFUL, headers=headers).json()
        assert asked["readings"][0]["encoding"] == "euc_jp"


@pytest.mark.django_db(transaction=True)
class TestUpload:
    def test_a_file_is_kept_for_a_message(self, alice):
        answer = post(signed_in(alice), name="../notes\u202e.md")
        assert answer.status_code == 201
        row = Upload.objects.get()
        assert answer.json() == {
            **{"id": str(row.pk), "name": "notes.md", "kind": "md", "size": 12},
            "tokens": 3,
        }
        assert (row.owner, row.text) == (alice, "Hello there.")

    def test_answer_says_what_is_left_out(self, alice):
        data = pdfs.make("One", "")
        answer = post(signed_in(alice), data, name="a.pdf").json()
        assert answer["left_out"] == "1 page without text"

    def test_file_without_text_is_refused_with_a_sentence(self, alice):
        answer = post(signed_in(alice), b"PK\x03\x04....")
        assert answer.status_code == 400
        assert answer.json()["error"] == "not_text"
        assert "PDF" in answer.json()["detail"]
        assert not Upload.objects.exists()

    def test_form_without_a_file_is_refused(self, alice):
        answer = signed_in(alice).post(UPLOAD, {"file": "text"})
        assert (answer.status_code, answer.json()["error"]) == (400, "no_file")

    def test_a_stranger_is_refused(self):
        assert post(Client()).status_code == 401

    def test_refusal_is_in_the_language_of_the_page(self):
        # What a request has chosen stays in the thread, for the tests after it.
        with override("en"):
            answer = post(Client(), headers={"Accept-Language": "zh-hans"})
        assert answer.json()["detail"] == "请先登录。"

    def test_a_file_is_refused_in_it_too(self, alice, monkeypatch):
        def refuse(data, chars, hints):
            raise FileError("not_text", get_language())

        monkeypatch.setattr(reading, "decode_text", refuse)
        with override("en"):
            answer = post(signed_in(alice), headers={"Accept-Language": "zh-hans"})
        assert answer.json()["detail"] == "zh-hans"

    def test_upload_without_a_csrf_token_is_refused(self, alice):
        client = signed_in(alice, enforce_csrf_checks=True)
        assert post(client).status_code == 403
        assert not Upload.objects.exists()

    def test_upload_by_get_is_refused(self, alice):
        assert signed_in(alice).get(UPLOAD).status_code == 405

    def test_a_file_that_is_too_large_is_refused(self, alice, settings):
        settings.ATTACHMENT_MAX_MB = 0
        answer = post(signed_in(alice))
        assert (answer.status_code, answer.json()["error"]) == (413, "too_large")

    def test_more_than_can_wait_are_refused(self, alice):
        for _ in range(uploads.MOST_UNSENT):
            keep(alice)
        answer = post(signed_in(alice))
        assert (answer.status_code, answer.json()["error"]) == (429, "too_many")
        assert Upload.objects.count() == uploads.MOST_UNSENT

    def test_the_owner_removes_it_and_nobody_else(self, alice, bob):
        row = keep(alice)
        address = reverse("attachment-remove", args=[row.pk])
        assert signed_in(bob).post(address).status_code == 204
        assert Client().post(address).status_code == 401
        assert Upload.objects.exists()
        assert signed_in(alice).post(address).status_code == 204
        assert signed_in(alice).post(address).status_code == 204
        assert not Upload.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestPlace:
    """The slots of the few requests that a process works on at once."""

    @pytest.fixture
    def left(self, monkeypatch):
        found = []
        monkeypatch.setattr(views, "close_connection", lambda: found.append("thread"))
        monkeypatch.setattr(load, "leave_place", lambda scope: found.append("place"))
        return found

    def test_waiting_pdf_holds_nothing(self, alice, left, monkeypatch):
        async def run(*arguments, data):
            left.append("reads")
            return {"text": "x"}

        monkeypatch.setattr(processes, "read_document", run)
        assert post(signed_in(alice), b"%PDF-1.4", "a.pdf").status_code == 201
        assert left == ["thread", "place", "reads"]

    def test_a_text_that_is_read_at_once_keeps_its_place(self, alice, left):
        assert post(signed_in(alice)).status_code == 201
        assert left == []


class TestTaking:
    def test_files_are_taken_once_in_the_order_named(self, alice):
        first, second = keep(alice, "One"), keep(alice, "Two")
        ids = [str(second.pk), str(first.pk)]
        assert [each.text for each in uploads.take_files(alice.pk, ids)] == [
            "Two",
            "One",
        ]
        with pytest.raises(TextError) as caught:
            uploads.take_files(alice.pk, ids)
        assert caught.value.code == "attachment_gone"

    def test_files_of_other_users_count_as_missing(self, alice, bob):
        row = keep(alice)
        for pk in (row.pk, uuid.uuid4()):
            with pytest.raises(TextError) as caught:
                uploads.take_files(bob.pk, [str(pk)])
            assert caught.value.code == "attachment_gone"
        assert Upload.objects.exists()

    @pytest.mark.parametrize(
        "ids",
        [
            "text",
            7,
            {"a": 1},
            [7],
            ["../etc"],
            [None],
            ["a" * 32, "A" * 32],
            [["a"]],
        ],
    )
    def test_value_that_is_no_list_of_ids_is_refused(self, ids):
        with pytest.raises(TextError) as caught:
            uploads.read_upload_ids(ids)
        assert caught.value.code == "bad_attachments"

    def test_more_than_a_message_can_have_are_refused(self):
        with pytest.raises(TextError) as caught:
            uploads.read_upload_ids([str(uuid.uuid4())] * 11)
        assert caught.value.code == "too_many"


class TestSweep:
    def test_unsent_file_is_deleted_after_a_day(self, alice):
        old, new = keep(alice), keep(alice)
        before = timezone.now() - uploads.KEPT - timedelta(seconds=5)
        Upload.objects.filter(pk=old.pk).update(created_at=before)
        assert [*uploads.find_expired_uploads()] == [old]
        assert uploads.delete_expired_uploads() == 1
        assert [*Upload.objects.all()] == [new]
        assert uploads.delete_expired_uploads() == 0

    def test_upload_is_deleted_with_its_owner(self, alice):
        keep(alice)
        alice.delete()
        assert not Upload.objects.exists()
