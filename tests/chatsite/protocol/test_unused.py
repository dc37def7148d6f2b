"""A site without REDIS_URL does not load Redis's client."""

import subprocess
import sys

import pytest

from tests.servers import ROOT, Site

SCRIPT = """
import sys
import chatsite.asgi
from channels.layers import get_channel_layer
get_channel_layer()
print(*sorted(set(sys.modules) & {"redis", "channels_redis", "msgpack"}))
"""


@pytest.mark.server
@pytest.mark.parametrize(
    ("url", "loaded"),
    [("", []), ("redis://127.0.0.1:1/0", ["channels_redis", "msgpack", "redis"])],
)
def test_redis_is_loaded_only_with_its_address(url, loaded, tmp_path):
    database = f"sqlite:///{tmp_path}/site.sqlite3"
    given = {"DATABASE_URL": database, "DEBUG": "true", "REDIS_URL": url}
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=Site(given).environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == loaded
