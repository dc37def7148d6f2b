"""The page Settings of the admin, and the release that pages and machines read."""

import pytest
from django.urls import reverse

from chatsite.ops import settings_page
from chatsite.release import find_version
from chatsite.settings import env

pytestmark = pytest.mark.django_db
URL = "/admin/settings/"


@pytest.fixture
def admin_of(client):
    def log_in(user):
        client.force_login(user)
        return client

    return log_in


def test_page_has_every_setting_and_no_secret(admin_of, staff, monkeypatch):
    secret = env.settings["SECRET_KEY"].value
    page = admin_of(staff).get(URL).text
    assert all(f">{name}</th>" in page for name in env.settings)
    assert secret not in page
    assert str(env.settings["DATABASE_URL"].value) not in page
    assert "Check whether everything works" in page


def test_a_row_says_the_value_the_source_and_the_default():
    rows = {row.name: row for row in settings_page.list_setting_rows()}
    row = rows["DEMO_TOKENS_PER_SECOND"]
    assert (row.value, row.source, row.default) == ("0", "environment", "40")
    assert row.is_changed
    assert (rows["SECRET_KEY"].value, rows["SECRET_KEY"].default) == ("set", "")
    assert rows["METRICS_TOKEN"].value == ""
    assert rows["STREAM_USAGE"].value == "true"


def test_page_checks_on_demand(admin_of, staff):
    page = admin_of(staff).get(URL, {"checks": "1"}).text
    assert "lease clock" in page
    assert "works" in page


def test_page_is_hidden_from_other_users(admin_of, staff, client):
    assert client.get(URL).status_code == 302
    staff.is_superuser = False
    staff.save()
    assert admin_of(staff).get(URL).status_code == 403
    assert "Settings" not in client.get(reverse("admin:index")).text


def test_the_release_is_at_the_foot_of_the_admin_only(admin_of, staff, client):
    assert find_version() not in client.get(reverse("admin:login")).text
    page = admin_of(staff).get(reverse("admin:index")).text
    assert f"Windowpane {find_version()}" in page
    assert f'href="{URL}"' in page


def test_page_speaks_chinese(admin_of, staff):
    page = admin_of(staff).get(URL, headers={"accept-language": "zh-hans"}).text
    assert "<h1>设置</h1>" in page
    assert "检查一切是否正常" in page


def test_machines_are_told_the_release(client, settings):
    assert client.get("/readyz").headers["Windowpane-Version"] == find_version()
    assert "Windowpane-Version" not in client.get("/healthz").headers
    settings.METRICS_TOKEN = "token"
    text = client.get("/metrics", headers={"authorization": "Bearer token"}).text
    assert f'windowpane_info{{version="{find_version()}"}} 1.0' in text
    assert 'windowpane_turns_ended_total{state="failed"}' in text
