"""The root of a day: what is recorded, published and proved."""

import hashlib
import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from chatsite.contrib.evidence import transparency, verify, views
from chatsite.contrib.evidence.models import SignedFile

pytestmark = pytest.mark.django_db
WRONG = (False, "the proof does not lead to its root")


@pytest.fixture(autouse=True)
def roots(settings, tmp_path):
    transparency.pace.clear()
    transparency._read_day.cache_clear()
    settings.EVIDENCE_ROOT_FILE = str(tmp_path / "roots.txt")
    return tmp_path / "roots.txt"


def hash_node(text):
    return hashlib.sha256(text).digest()


def record_day(count, days=2):
    """Hashes of so many files that were signed some days ago, in their order."""
    day = timezone.now().date() - timedelta(days=days)
    hashes = sorted(hashlib.sha256(b"%d" % n).hexdigest() for n in range(count))
    rows = [SignedFile(sha256=each, day=day) for each in hashes]
    SignedFile.objects.bulk_create(rows)
    return day, hashes


def end_days():
    ended = timezone.now().date() - timedelta(days=2)
    SignedFile.objects.update(day=ended)


def read_proof(client, data):
    sha256 = hashlib.sha256(data).hexdigest()
    return client.get(f"/.well-known/windowpane-proof/{sha256}.json")


class TestRecord:
    def test_download_is_recorded_without_anything_else(self, source, download):
        data = download(source).data
        row = SignedFile.objects.get()
        assert row.sha256 == hashlib.sha256(data).hexdigest()
        assert row.day == timezone.now().date()

    def test_site_without_the_setting_keeps_no_hash(
        self, client, settings, source, download
    ):
        settings.EVIDENCE_ROOT_FILE = ""
        data = download(source).data
        assert not SignedFile.objects.exists()
        SignedFile.objects.create(
            sha256=hashlib.sha256(data).hexdigest(), day="2026-01-01"
        )
        assert read_proof(client, data).status_code == 404
        with pytest.raises(CommandError):
            call_command("evidence_root")

    def test_rows_of_one_user_are_limited(self, monkeypatch, source, download):
        monkeypatch.setattr(transparency, "MOST_A_DAY", 2)
        answers = [download(source).answer.status_code for _ in range(4)]
        assert answers == [200] * 4
        assert SignedFile.objects.count() == 2
        another = b'{"windowpane_signature":{"signed_at":"2026-11-29T06:12:00Z"}}'
        transparency.record_file(another, "another")
        assert SignedFile.objects.count() == 3


class TestRoots:
    def test_tree_is_that_of_the_standard(self):
        day, hashes = record_day(3)
        one, two, three = (hash_node(b"\0" + bytes.fromhex(each)) for each in hashes)
        root = hash_node(b"\1" + hash_node(b"\1" + one + two) + three).hex()
        assert transparency.describe_day(day) == f"{day} {root} 3"

    def test_each_day_has_one_line(self, roots, capsys):
        older, _ = record_day(2, days=3)
        call_command("evidence_root")
        newer = timezone.now().date() - timedelta(days=2)
        SignedFile.objects.create(sha256="0" * 64, day=newer)
        call_command("evidence_root")
        call_command("evidence_root")
        lines = roots.read_text().splitlines()
        assert [line.split()[0] for line in lines] == [str(older), str(newer)]
        assert capsys.readouterr().out.splitlines() == lines

    def test_day_that_has_not_ended_has_no_line(self, roots, source, download):
        download(source)
        call_command("evidence_root")
        assert roots.read_text() == ""

    def test_old_days_are_deleted_once_they_have_a_line(self, roots):
        record_day(2, days=transparency.KEPT_DAYS + 1)
        call_command("evidence_root")
        assert not SignedFile.objects.exists()
        assert len(roots.read_text().splitlines()) == 1


class TestProof:
    @pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 33])
    def test_every_file_leads_to_the_root(self, count):
        record_day(count)
        for number in range(count):
            data = b"%d" % number
            proof = transparency.prove_inclusion(hashlib.sha256(data).hexdigest())
            signature = {"signed_at": "2026-11-29T06:12:00Z"}
            said = verify.check_root(data, proof, signature)
            assert said == f"in the root of 2026-11-29, {proof['root']}"
            with pytest.raises(ValueError, match="does not lead"):
                verify.check_root(b"another", proof, signature)

    def test_verifier_names_the_published_root(self, roots, client, source, download):
        evidence = [download(source) for _ in range(3)][-1]
        assert read_proof(client, evidence.data).status_code == 404
        end_days()
        call_command("evidence_root")
        proof = read_proof(client, evidence.data).content
        is_right, text = verify.verify(evidence.data, evidence.keys, proof)
        assert is_right
        _day, root, size = roots.read_text().split()
        assert text.endswith(f"in the root of {timezone.now().date()}, {root}")
        assert size == "3"

    def test_day_of_the_root_is_that_of_the_signature(self, client, source, download):
        """A reader then compares the root with the line of the day that the file has:
        one that was signed later with an earlier time is in the root of another day."""
        evidence = download(source)
        end_days()
        proof = read_proof(client, evidence.data).json() | {"day": "1999-01-01"}
        data = json.dumps(proof).encode()
        is_right, text = verify.verify(evidence.data, evidence.keys, data)
        assert is_right
        assert text.endswith(f"in the root of {timezone.now().date()}, {proof['root']}")

    def test_wrong_proof_is_refused(self, client, source, download):
        one, other = download(source), download(source)
        end_days()
        proof = read_proof(client, one.data).json()
        for wrong in (
            read_proof(client, other.data).json(),
            proof | {"root": "0" * 64},
            proof | {"path": proof["path"] * 2},
            json.loads(one.keys),
        ):
            data = json.dumps(wrong).encode()
            assert verify.verify(one.data, one.keys, data) == WRONG

    def test_requests_of_one_address_are_limited(self, client, settings):
        settings.EVIDENCE_PER_MINUTE = 3
        views.pace.clear()
        codes = [read_proof(client, b"guessed").status_code for _ in range(6)]
        assert codes[0] == 404
        assert codes[-1] == 429
