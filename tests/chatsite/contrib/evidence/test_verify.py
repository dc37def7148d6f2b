"""verify.py: what it accepts, and that it accepts nothing that was changed."""

import hashlib
import json
import subprocess
import sys
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from chatsite.contrib.evidence import signing_keys, verify, views
from chatsite.contrib.evidence.models import SigningKey
from tests import rounds
from tests.memory.scenes import summarise

from ...scenes import talk_in_turns
from .mutations import Mutations

pytestmark = pytest.mark.django_db
MUTATIONS = rounds.choose(2_000, 10_000)


@pytest.fixture
def evidence(source, download):
    return download(source)


def sign(evidence, change):
    """The file with a change that the site itself has signed."""
    file = evidence.file
    del file["windowpane_signature"]
    change(file)
    return signing_keys.sign_file(file, json.loads(evidence.keys)["site"])


class TestCommand:
    def run(self, folder, evidence, *options, keys=None):
        (folder / "file").write_bytes(evidence.data)
        (folder / "keys").write_bytes(keys or evidence.keys)
        script = str(views.FOLDER / "verify.py")
        command = [sys.executable, *options, script, "file", "keys"]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False
        )

    def test_right_file_ends_with_0(self, tmp_path, evidence):
        done = self.run(tmp_path, evidence)
        assert done.returncode == 0, done.stdout
        assert done.stdout.startswith("signed by http")
        assert "the request rebuilds to its hash; " in done.stdout

    def test_library_is_not_needed(self, tmp_path, evidence):
        # Without the environment's packages.
        slow = self.run(tmp_path, evidence, "-I", "-S")
        assert slow.returncode == 0
        assert slow.stdout == self.run(tmp_path, evidence).stdout

    def test_wrong_file_ends_with_1(self, tmp_path, evidence):
        evidence.data = evidence.data.replace(b"Four, better", b"Four, worse!")
        done = self.run(tmp_path, evidence)
        assert done.returncode == 1
        assert done.stdout.startswith("changed: dialog ")

    def test_program_is_short(self):
        lines = (views.FOLDER / "verify.py").read_text().splitlines()
        assert len(lines) <= 150


class TestKeys:
    def test_file_of_another_site_is_refused(self, evidence):
        SigningKey.objects.all().delete()
        other = sign(evidence, lambda file: None)
        is_right, text = evidence.check(data=other)
        assert not is_right
        assert "not with a key of" in text

    def test_file_of_another_origin_is_refused(self, evidence):
        keys = json.loads(evidence.keys) | {"site": "https://other.example"}
        is_right, text = evidence.check(keys=json.dumps(keys))
        assert not is_right
        assert "not with a key of https://other.example" in text

    def test_older_file_is_right_after_its_key_was_retired(self, source, download):
        before = download(source)
        call_command("signing_key", "rotate")
        after = download(source)
        kids = [each.file["windowpane_signature"]["kid"] for each in (before, after)]
        assert len({*kids}) == 2
        is_right, text = before.check(keys=after.keys)
        assert is_right
        assert "(its key was retired on " in text
        assert after.check()[0]
        assert not SigningKey.objects.get(kid=kids[0]).private

    def test_file_from_after_the_retirement_is_refused(self, evidence):
        keys = json.loads(evidence.keys)
        past = timezone.now() - timedelta(hours=1)
        keys["keys"][0]["retired_at"] = signing_keys.format_time(past)
        is_right, text = evidence.check(keys=json.dumps(keys))
        assert not is_right
        assert "after its key was retired" in text

    def test_file_from_before_the_key_is_refused(self, evidence):
        keys = json.loads(evidence.keys)
        later = timezone.now() + timedelta(hours=1)
        keys["keys"][0]["created_at"] = signing_keys.format_time(later)
        assert "before its key was made" in evidence.check(keys=json.dumps(keys))[1]

    def test_clocks_may_differ_a_little(self, evidence, monkeypatch):
        for hours, is_accepted in ((23, True), (25, False)):
            moment = timezone.now() + timedelta(hours=hours)
            monkeypatch.setattr(signing_keys.timezone, "now", lambda at=moment: at)
            assert evidence.check(data=sign(evidence, lambda f: None))[0] is is_accepted
            monkeypatch.undo()

    def test_site_without_a_key_says_so(self, evidence, source, download):
        kid = SigningKey.objects.get().kid
        call_command("signing_key", "retire", kid)
        assert download(source).answer.status_code == 409
        with pytest.raises(CommandError):
            call_command("signing_key", "retire", kid)
        call_command("signing_key", "make")
        assert download(source).check()[0]
        with pytest.raises(CommandError):
            call_command("signing_key", "make")

    def test_private_key_is_encrypted(self, evidence, settings, source, download):
        settings.SIGNING_KEY = "another secret of this site, long enough for all"
        assert download(source).answer.status_code == 409

    def test_keys_are_public(self, client, evidence):
        client.logout()
        answer = client.get("/.well-known/windowpane-keys.json")
        (key,) = answer.json()["keys"]
        assert key["crv"] == "Ed25519"
        assert "private" not in key


class TestSlowSignatures:
    @pytest.fixture
    def without_library(self, monkeypatch):
        name = "cryptography.hazmat.primitives.asymmetric"
        monkeypatch.setitem(sys.modules, name, None)

    def test_slow_check_agrees_with_the_library(self, without_library):
        for seed in range(5):
            private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
            key, data = private.public_key().public_bytes_raw(), b"text" * seed
            value = private.sign(data)
            verify.check_signed(key, value, data)
            number = int.from_bytes(value[32:], "little") + verify.L
            again = value[:32] + number.to_bytes(32, "little")
            for wrong in (again, value[:-1] + b"\x00", b"\x01" + value[1:]):
                with pytest.raises(ValueError, match="no signature that fits"):
                    verify.check_signed(key, wrong, data)


class TestContents:
    """Contents that a site has signed and that are wrong in themselves."""

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (lambda f: f["dialog"].pop(), "the account is not that"),
            (lambda f: f["windowpane"].update(messages=3), "a message has no place"),
            (
                lambda f: f["windowpane"]["request"]["body"].append(" "),
                "the request has another hash",
            ),
            (
                lambda f: f["windowpane"]["sections"].update(rules="Never."),
                "the request does not have rules",
            ),
        ],
    )
    def test_contradiction_is_named(self, evidence, change, text):
        is_right, said = evidence.check(data=sign(evidence, change))
        assert not is_right
        assert text in said

    def test_summary_has_to_have_read_its_messages(self, conversation, download):
        talk_in_turns(conversation, "Three")
        summarise(conversation, 1, 4)
        evidence = download(conversation)
        assert evidence.check()[0]
        data = sign(evidence, lambda file: file["analysis"][0]["dialog"].pop())
        text = "a message is in a summary that did not read it"
        assert evidence.check(data=data) == (False, text)

    def test_sent_message_has_to_be_in_the_request(self, evidence):
        def change(file):
            said = next(d for d in file["dialog"] if d["windowpane"]["is_whole"])
            said["body"] = "Never said."

        text = evidence.check(data=sign(evidence, change))[1]
        assert text.startswith("the request does not have message ")


class TestForms:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"\xff",
            b'{"a":1,"a":1}',
            b'{"a":NaN}',
            b'{"a":1e999}',
            b'{"a":9007199254740992}',
            b'{"a":' + b"9" * 6000 + b"}",
            b'{"a":"\\ud800"}',
            b"[" * 100_000,
            b'{"windowpane_signature":null}',
            b'{"windowpane_signature":{"site":1}}',
        ],
    )
    def test_other_form_is_refused(self, evidence, data):
        assert verify.verify(data, evidence.keys)[0] is False

    def test_form_is_canonical(self):
        value = {"\U0001f600": 1, "\ufb33": [True, None, "\u2028\x7f\x01é\n"], "a": -1}
        text = '{"a":-1,"\U0001f600":1,"\ufb33":[true,null,"\u2028\x7f\\u0001é\\n"]}'
        assert verify.canonical(value) == text

    @pytest.mark.parametrize("number", [0.5, 1.0, float("inf"), float("nan"), 2**53])
    def test_other_numbers_are_refused(self, number):
        with pytest.raises(ValueError, match="a number"):
            verify.canonical([number])


def test_mutations_are_refused(evidence):
    mutations, tried, accepted = Mutations(evidence.data, 55), 0, []
    while tried < MUTATIONS:
        data = mutations.make()
        if data == evidence.data:
            continue
        tried += 1
        if evidence.check(data=data)[0]:
            accepted.append(hashlib.sha256(data).hexdigest())
    assert accepted == []


def test_older_evidence_still_verifies_with_later_messages(source, download):
    before = download(source)
    talk_in_turns(source, "More")
    assert before.check()[0]
    assert download(source).check()[0]
