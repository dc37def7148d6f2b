"""One installation for all tests of this folder; starting it takes seconds."""

import socket

import pytest

from tests import plugin
from tests.clients import Person
from tests.databases import MIGRATED
from tests.fakes.upstream import Upstream

from .installation import Installation, Nginx
from .mirror import Mirror


@pytest.fixture(scope="session")
def provider():
    with Upstream() as server:
        yield server


@pytest.fixture(scope="session")
def manager(tmp_path_factory):
    """The socket on which systemd would listen to its services."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path_factory.mktemp("manager") / "notify"))
        listener.settimeout(5)
        yield listener


@pytest.fixture(scope="session")
def mail_folder(tmp_path_factory):
    """The folder of the installation's mails, one file each."""
    return tmp_path_factory.mktemp("mails")


@pytest.fixture(scope="session")
def _installation(provider, redis_server, manager, mail_folder):
    plugin.cluster.start()
    env = {
        "REDIS_URL": redis_server.url,
        "OPENAI_BASE_URL": provider.url,
        "OPENAI_API_KEY": "sk-test",
        "CHAT_MODEL": "ok",
        "SIGNUP_ENABLED": "true",
        "EMAIL_URL": f"filemail:///{mail_folder}",
        "MAIL_FROM": "site@example.org",
        "METRICS_TOKEN": "token-of-the-tests",
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "300000000",
    }
    with (
        # Migrated by the same command, from nothing.
        plugin.cluster.database(MIGRATED) as url,
        Installation(**env, DATABASE_URL=url) as installation,
    ):
        yield installation


@pytest.fixture
def site(_installation):
    yield _installation
    for server in (_installation.nginx, *_installation.processes):
        server.show_log()


@pytest.fixture(scope="session")
def ann(_installation):
    return Person(_installation, "ann")


@pytest.fixture(scope="session")
def _mirror(tmp_path_factory):
    with Mirror() as one, Mirror() as two:
        static = tmp_path_factory.mktemp("static")
        with Nginx([one.port, two.port], static) as nginx:
            yield nginx, (one, two)


@pytest.fixture
def proxy(_mirror):
    """nginx before two servers that answer with what they were asked."""
    nginx, mirrors = _mirror
    for mirror in mirrors:
        mirror.requests.clear()
    return nginx


@pytest.fixture
def mirrors(_mirror):
    return _mirror[1]


@pytest.fixture
def passed_on(_mirror):
    """passed_on() -> [(path, headers)] of all that nginx let through."""
    return lambda: [each for mirror in _mirror[1] for each in mirror.requests]
