"""The management commands, called as a script would call them."""

import json
from datetime import date
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import RequestFactory

from chatsite.ops.management.commands import doctor
from memory import transcript
from memory.models import Conversation, Summary
from tests.memory.scenes import unguarded

pytestmark = pytest.mark.django_db


def call(*args, **options):
    out = StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


class TestCreateUser:
    def test_create_user_makes_a_user_who_can_log_in(self):
        call("create_user", "carol", "pw")
        request = RequestFactory().post("/")
        user = authenticate(request, username="carol", password="pw")
        assert user.username == "carol"
        assert not user.is_staff
        assert not user.is_superuser

    def test_create_user_makes_staff_who_may_only_read(self, django_user_model):
        call("create_user", "carol", "pw", "--staff")
        carol = django_user_model.objects.get(username="carol")
        assert carol.is_staff
        reading = {"memory.view_metadata", "memory.read_content"}
        assert carol.get_all_permissions() == reading

    def test_create_user_refuses_a_name_that_is_taken(self, alice):
        with pytest.raises(CommandError, match="'alice'"):
            call("create_user", "alice", "other")
        alice.refresh_from_db()
        assert alice.check_password("alice-secret")

    def test_create_user_leaves_an_existing_user_alone_if_missing(self, alice):
        assert "already" in call("create_user", "alice", "other", "--if-missing")
        alice.refresh_from_db()
        assert alice.check_password("alice-secret")

    @pytest.mark.parametrize("name", ["", "with space", "a" * 151, "<b>"])
    def test_create_user_refuses_a_bad_name(self, name):
        with pytest.raises(CommandError):
            call("create_user", name, "pw")

    def test_create_user_refuses_an_empty_password(self):
        with pytest.raises(CommandError, match="password"):
            call("create_user", "carol", "")


class TestAudit:
    def test_audit_prints_clean(self):
        assert call("audit").split() == ["clean"]

    def test_audit_prints_each_violation_and_exits_with_1(self, alice):
        conversation = transcript.create_conversation(alice)
        for number in "12":
            transcript.append_user_message(
                conversation, text="No turn", client_id=number
            )
        Conversation.objects.update(next_seq=1)
        out = StringIO()
        with pytest.raises(SystemExit) as exit_:
            call_command("audit", stdout=out)
        assert exit_.value.code == 1
        lines = out.getvalue().splitlines()
        assert len(lines) == 5
        assert f"R6.number conversation={conversation.pk} " in lines[0]


@pytest.mark.django_db(transaction=True)
class TestSeedDemo:
    @pytest.fixture
    def seeded(self):
        call("seed_demo")
        return Conversation.objects.get(owner__username="demo")

    def test_seed_demo_makes_a_conversation_with_its_history_once(self, seeded):
        assert seeded.messages.count() == 30
        assert seeded.compaction_failures == 0
        summaries = seeded.summaries.order_by("version")
        statuses = list(summaries.values_list("status", flat=True))
        assert statuses == ["superseded", "failed", "superseded", "active"]
        assert summaries.last().text
        assert summaries.last().folded_from.get() == summaries[2]
        texts = " ".join(seeded.messages.values_list("text", flat=True))
        assert "3,200 euros" in texts
        assert "鸭川" in texts
        assert call("audit").split() == ["clean"]
        assert "already" in call("seed_demo")
        assert Conversation.objects.get() == seeded
        assert Summary.objects.count() == 4

    def test_seed_demo_starts_again_after_half_a_run(self, seeded):
        unguarded(seeded.messages.filter(seq__gt=20)).delete()
        call("seed_demo")
        assert Conversation.objects.get().messages.count() == 30
        assert call("audit").split() == ["clean"]


@pytest.mark.django_db(transaction=True)
class TestDoctor:
    @pytest.fixture(autouse=True)
    def on_a_developers_machine(self, settings):
        settings.DEBUG = True

    def examine(self, *args):
        """The findings by name, and the exit code."""
        out, code = StringIO(), 0
        try:
            call_command("doctor", "--json", *args, stdout=out)
        except SystemExit as exit_:
            code = exit_.code
        report = json.loads(out.getvalue())
        assert report["ok"] is (code == 0)
        return {each["name"]: each for each in report["checks"]}, code

    def test_doctor_finds_nothing_wrong(self):
        findings, code = self.examine()
        assert code == 0
        assert "demo model" in findings["model"]["detail"]
        assert "one process" in findings["channel layer"]["detail"]

    def test_doctor_prints_a_line_for_each_check(self):
        lines = call("doctor").splitlines()
        assert len(lines) == len(doctor.list_checks())
        assert all("ok" in line for line in lines)

    def test_doctor_asks_the_model(self):
        findings, code = self.examine("--model")
        assert code == 0
        assert findings["chat model"]["detail"].startswith("demo answered")

    def test_doctor_asks_a_real_model_without_showing_the_key(self, upstream):
        findings, code = self.examine("--model")
        assert code == 0
        assert "ok answered" in findings["chat model"]["detail"]
        assert "a key is set" in findings["model"]["detail"]
        assert "SECRET" not in json.dumps(findings)

    def test_doctor_reports_a_model_that_is_out_of_reach(self, upstream, settings):
        settings.CHAT_MODEL = "401"
        findings, code = self.examine("--model")
        assert code == 1
        assert findings["chat model"]["detail"].startswith("401: ")
        assert "SECRET" not in json.dumps(findings)

    def test_doctor_reports_a_missing_key(self, settings):
        settings.CHAT_MODEL = "gpt-5.4-mini"
        findings, code = self.examine()
        assert code == 1
        assert "OPENAI_API_KEY is not set" in findings["model"]["detail"]

    @pytest.mark.parametrize(("year", "code"), [("2099", 0), ("2020", 1)])
    def test_doctor_says_when_a_model_ends(self, settings, monkeypatch, year, code):
        ends = {"gpt-x": date.fromisoformat(f"{year}-01-14")}
        monkeypatch.setattr("chatsite.llm.known_models._DATES", ends)
        settings.OPENAI_API_KEY, settings.CHAT_MODELS = "sk-x", ["gpt-x"]
        findings, found = self.examine()
        assert found == code
        told = findings["model ends"]["detail"]
        assert f"by OpenAI on {year}-01-14" in told
        assert "name another model in CHAT_MODELS, such as gpt-5.4-mini" in told

    def test_doctor_refuses_settings_that_cannot_work(self, settings):
        settings.CONTEXT_WINDOW = 100
        findings, code = self.examine()
        assert code == 1
        assert "chat.E004" in findings["settings"]["detail"]

    def test_doctor_only_names_issues_that_may_be_on_purpose(self, monkeypatch):
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        findings, code = self.examine()
        assert code == 0
        assert "chat.W003" in findings["settings"]["detail"]

    def test_doctor_reports_a_missing_migration(self):
        recorder = MigrationRecorder(connection)
        (latest,) = MigrationLoader(connection).graph.leaf_nodes("chat")
        recorder.record_unapplied(*latest)
        try:
            findings, code = self.examine()
        finally:
            recorder.record_applied(*latest)
        assert code == 1
        assert "migrate" in findings["migrations"]["detail"]

    def test_doctor_shows_the_limits(self, settings):
        settings.TOKENS_PER_DAY = 5000
        findings, _ = self.examine()
        assert "TOKENS_PER_DAY 5000" in findings["limits"]["detail"]

    def test_doctor_compares_the_clocks(self, monkeypatch):
        monkeypatch.setattr("time.time", lambda: 1_000_000.0)
        findings, code = self.examine()
        assert code == 1
        assert "same time server" in findings["lease clock"]["detail"]

    def test_doctor_reports_missing_collected_files(self, settings, tmp_path):
        settings.DEBUG = False
        settings.STATIC_ROOT = tmp_path
        backend = "whitenoise.storage.CompressedManifestStaticFilesStorage"
        settings.STORAGES = {
            **settings.STORAGES,
            "staticfiles": {"BACKEND": backend},
        }
        findings, code = self.examine()
        assert code == 1
        assert "collectstatic" in findings["static files"]["detail"]

    def test_doctor_hides_secrets_in_the_text_of_errors(self, settings, monkeypatch):
        settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1"

        async def refuse(*args):
            raise OSError("redis://:hunter2@127.0.0.1:1\nis not there")

        monkeypatch.setattr("channels.layers.InMemoryChannelLayer.group_add", refuse)
        findings, code = self.examine()
        assert code == 1
        detail = findings["channel layer"]["detail"]
        assert "redis://:********@127.0.0.1:1 is not there. Check REDIS_URL." in detail
