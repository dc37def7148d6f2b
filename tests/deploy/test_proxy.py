"""The rules of deploy/nginx: what gets through to the site and what does not."""

import http.client
import re
import shutil
import socket
import ssl

import pytest

from tests.forged import ALL
from tests.paths import find_route, read_by_site, write_otherwise
from tests.patience import wait_for
from tests.servers import ROOT, free_port

from .installation import HOST, Nginx

# nginx serves the same whatever the database.
pytestmark = [pytest.mark.server, pytest.mark.database("postgresql")]

# All that the site takes from no client, and what only the connection is about.
FORGED = {
    **ALL,
    "x_forwarded_proto": "http",
    "upgrade": "h2c",
    "connection": "X-Forwarded-Proto, X-Forwarded-For, Upgrade",
}


def ask(nginx, path, *, method="GET", body=None, headers=()):
    """One request, with its path and headers as they are."""
    tls = http.client.HTTPSConnection(HOST, nginx.port, timeout=10, context=nginx.tls)
    tls.request(method, path, body, dict(headers))
    response = tls.getresponse()
    response.body = response.read()
    tls.close()
    return response


def test_forged_headers_are_dropped(proxy, passed_on):
    assert ask(proxy, "/", headers=FORGED).status == 200
    ((_, headers),) = passed_on()
    claims = {name: headers.get(name) for name in FORGED}
    assert claims == {
        **dict.fromkeys(FORGED),
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "https",
        "connection": "close",
    }
    assert headers["host"] == f"{HOST}:{proxy.port}"


def test_upgrade_is_for_sockets_only(proxy, passed_on):
    ask(proxy, "/ws/", headers={"Upgrade": "WebSocket", "Connection": "upgrade"})
    ((_, headers),) = passed_on()
    assert headers["upgrade"] == "websocket"
    assert headers["connection"] == "upgrade"


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/metrics/", "//metrics", "/%6detrics", "/a/../metrics?x=1"]
    + ["/readyz", "/./readyz"],
)
def test_monitoring_paths_are_not_public(proxy, passed_on, path):
    assert ask(proxy, path).status == 404
    assert passed_on() == []


ADMIN = ("/admin/", "/admin/login/", "/admin/auth/user/")


class FencedNginx(Nginx):
    """An nginx with the admin limited to a network without tests, as in
    docs/deploy.md.
    """

    def _site(self):
        page = (ROOT / "docs" / "deploy.md").read_text()
        fence = re.search(r"`(location /admin/ \{.+?\})`", page)[1]
        return (
            super()
            ._site()
            .replace("    location /ws/ {", f"{fence}\n    location /ws/ {{")
        )


def test_admin_is_reached_from_its_network_alone(mirrors, passed_on, tmp_path):
    with FencedNginx([each.port for each in mirrors], tmp_path) as nginx:
        for path in (*ADMIN, "/admin/memory/message/7/change/"):
            for mirror in mirrors:
                mirror.requests.clear()
            others = [each for each in write_otherwise(path) if each.isascii()]
            assert {ask(nginx, each).status for each in others} >= {200, 403}
            routes = [find_route(read_by_site(each)) for each, _ in passed_on()]
            assert [
                route for route in routes if (route or "").startswith("admin")
            ] == []


def test_proxy_shows_a_page_that_reloads_while_no_process_answers(tmp_path):
    shutil.copy(ROOT / "static" / "unavailable.html", tmp_path)
    with Nginx([free_port(), free_port()], tmp_path) as nginx:
        for method in ("GET", "POST"):
            answer = ask(nginx, "/c/", method=method)
            assert answer.status == 502
            assert b'http-equiv="refresh"' in answer.body
            assert "Back in a moment" in answer.body.decode()
            assert "马上回来" in answer.body.decode()


def test_a_large_body_is_refused(proxy, passed_on):
    assert ask(proxy, "/c/", method="POST", body=b"x" * 1_100_000).status == 413
    assert passed_on() == []
    assert ask(proxy, "/c/", method="POST", body=b"x" * 900_000).status == 200
    for path in ("/import/", "/attachments/"):
        assert ask(proxy, path, method="POST", body=b"x" * 1_100_000).status == 200
    for size, status in ((21_000_000, 200), (23_000_000, 413)):
        body = b"x" * size
        assert ask(proxy, "/attachments/", method="POST", body=body).status == status


def test_guessing_passwords_is_slowed_down(proxy, passed_on):
    found = [ask(proxy, "/accounts/login/").status for _ in range(80)]
    assert found[:50] == [200] * 50
    assert 429 in found
    assert ask(proxy, "/").status == 200


def test_plain_http_leads_to_https(proxy, passed_on):
    plain = http.client.HTTPConnection(HOST, proxy.http_port, timeout=10)
    plain.request("GET", "/c/?q=1")
    response = plain.getresponse()
    assert response.status == 301
    assert response.headers["Location"] == f"https://{HOST}/c/?q=1"
    plain.close()
    assert passed_on() == []


def test_other_names_get_no_answer(proxy, passed_on):
    plain = http.client.HTTPConnection("127.0.0.1", proxy.http_port, timeout=10)
    plain.request("GET", "/")
    with pytest.raises(http.client.RemoteDisconnected):
        plain.getresponse()
    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as connection,
        pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|unrecognized name"),
    ):
        proxy.tls.wrap_socket(connection, server_hostname="evil.example")
    assert passed_on() == []


def test_log_leaves_out_the_secrets_of_links(proxy):
    for start in ("/s/", "/accounts/link/"):
        ask(proxy, f"{start}{'A' * 32}/")
        line = f'"GET {start}..." '
        wait_for(lambda line=line: line in proxy.access_log, what="the line in the log")
    assert "AAAA" not in proxy.access_log


def test_searches_are_not_logged(proxy):
    ask(proxy, "/c/?q=secret-wish", headers={"Referer": "https://x/?q=secret-wish"})
    # nginx writes the line after the answer has gone out.
    wait_for(lambda: '"GET /c/" 200' in proxy.access_log, what="the line in the log")
    assert "secret-wish" not in proxy.access_log
