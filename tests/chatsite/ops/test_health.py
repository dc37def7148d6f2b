"""Endpoints for machines: alive, ready, metrics; and the form of log lines."""

import json
import logging
import sys

import pytest
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from chatsite import metrics
from chatsite.ops import health, logs
from chatsite.protocol import layer
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn

pytestmark = pytest.mark.django_db


def fail(execute, *args):
    raise OperationalError("could not connect to secret-host")


class TestReady:
    async def test_site_is_ready(self, async_client, db):
        answer = await async_client.get("/readyz")
        assert (answer.status_code, answer.content) == (200, b"ready")

    def test_site_is_ready_but_degraded_without_its_layer(self, client, monkeypatch):
        health = layer._Health()
        health.note(ok=False)
        monkeypatch.setattr(layer, "health", health)
        monkeypatch.setattr(layer, "is_shared", lambda: True)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.content) == (200, b"degraded: channel layer")

    def test_site_is_not_ready_without_its_database(self, client):
        with connection.execute_wrapper(fail):
            answer = client.get("/readyz")
            assert client.get("/healthz").status_code == 200
        assert (answer.status_code, answer.content) == (503, b"database")

    def test_site_is_not_ready_with_a_read_only_database(self, client):
        is_sqlite = connection.vendor == "sqlite"
        with connection.cursor() as cursor:
            cursor.execute(
                "PRAGMA query_only = ON" if is_sqlite else "SET TRANSACTION READ ONLY"
            )
        answer = client.get("/readyz")
        if is_sqlite:
            connection.cursor().execute("PRAGMA query_only = OFF")
        assert (answer.status_code, answer.content) == (503, b"database is read-only")

    def test_site_is_not_ready_without_its_tables(self, client, monkeypatch):
        monkeypatch.setattr(health, "_migrated", False)
        (latest,) = MigrationLoader(connection).graph.leaf_nodes("chat")
        MigrationRecorder(connection).record_unapplied(*latest)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.content) == (503, b"migrations")


class TestMetrics:
    @pytest.fixture
    def scrape(self, client, settings):
        """The samples by name and labels."""
        settings.METRICS_TOKEN = "a token"

        def scrape():
            headers = {"authorization": "Bearer a token"}
            answer = client.get("/metrics", headers=headers)
            assert answer.status_code == 200
            families = text_string_to_metric_families(answer.content.decode())
            return {
                (sample.name, *sorted(sample.labels.values())): sample.value
                for family in families
                for sample in family.samples
            }

        return scrape

    def test_metrics_are_missing_without_a_token(self, client):
        assert client.get("/metrics").status_code == 404

    @pytest.mark.parametrize("header", ["", "Bearer wrong", "a token", "Bearer é"])
    def test_metrics_are_for_the_bearer_only(self, client, settings, header):
        settings.METRICS_TOKEN = "a token"
        answer = client.get("/metrics", headers={"authorization": header})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"

    def test_metrics_count_waiting_and_running_turns(self, scrape, conversation):
        for number in range(3):
            commands.submit_message(conversation, text="Go", client_id=f"c{number}")
        lifecycle.claim(conversation.pk)
        found = scrape()
        assert found["windowpane_turns", "queued"] == 2
        assert found["windowpane_turns", "running"] == 1
        assert found["windowpane_queue_oldest_seconds",] >= 0
        assert found["windowpane_database_up",] == 1

    def test_a_database_that_is_away_is_a_number_too(self, scrape):
        with connection.execute_wrapper(fail):
            found = scrape()
        assert found["windowpane_database_up",] == 0
        assert ("windowpane_turns", "queued") not in found

    def test_metrics_know_how_requests_ended(self, scrape):
        before = REGISTRY.get_sample_value("windowpane_reply_seconds_count")
        result = lifecycle.TurnResult(
            Turn.State.DONE, "Hi", first_token_ms=300, total_ms=900
        )
        metrics.note_reply(result)
        metrics.note_request("summary", "timeout")
        found = scrape()
        assert found["windowpane_reply_seconds_count",] == before + 1
        assert found["windowpane_first_token_seconds_bucket", "0.5"] >= 1
        assert found["windowpane_model_requests_total", "summary", "timeout"] >= 1

    def test_metrics_hold_no_names(self, scrape, conversation):
        names = " ".join(map(str, scrape()))
        assert "alice" not in names
        assert str(conversation.uuid) not in names


def record(message, *args, error=False):
    exc_info = None
    if error:
        try:
            raise ValueError("what somebody\ntyped")
        except ValueError:
            exc_info = sys.exc_info()
    return logging.LogRecord("chat", 20, "f.py", 1, message, args, exc_info)


class TestLogLines:
    def test_a_record_is_one_line(self):
        hostile = "a\r\nERROR forged\x1b[31m\u2028\ud800\x85end"
        line = logs.LineFormatter().format(record("path %s", hostile, error=True))
        assert len(line.splitlines()) == 1
        assert "\x1b" not in line
        assert r"a\r\nERROR forged\x1b[31m" in line
        line.encode()

    def test_an_exception_is_written_without_its_words(self):
        for formatter in (logs.LineFormatter(), logs.JsonFormatter()):
            line = formatter.format(record("task crashed", error=True))
            assert "ValueError" in line
            assert "test_health.py:" in line
            assert "typed" not in line

    def test_an_exception_is_written_whole_with_debug(self):
        line = logs.LineFormatter(debug=True).format(record("crashed", error=True))
        assert "what somebody" in line

    def test_a_link_to_a_shared_conversation_is_no_part_of_it(self):
        token = "aB3-" * 8
        for formatter in (logs.LineFormatter(), logs.JsonFormatter()):
            line = formatter.format(record("Not Found: %s", f"/s/{token}/raw/"))
            assert token not in line
            assert "/raw/" in line

    def test_json_has_the_ids_as_numbers(self):
        message = "turn ended turn=%s conversation=%s state=%s error=%s"
        line = logs.JsonFormatter().format(record(message, 7, 3, "done", "-"))
        value = json.loads(line)
        assert (value["turn"], value["conversation"]) == (7, 3)
        assert (value["state"], value["level"]) == ("done", "info")
        assert value["time"].endswith("+00:00")
        assert "\n" not in line
