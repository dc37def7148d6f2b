"""Forms are read by Django, in the thread of their request."""

import http.client
from contextlib import closing

import pytest

pytestmark = pytest.mark.server


def test_the_event_loop_does_not_read_forms(start_site):
    """Twisted would answer a broken form itself, and hang up."""
    kind = {"Content-Type": "multipart/form-data; boundary=a"}
    line = http.client.HTTPConnection("127.0.0.1", start_site().port, timeout=10)
    with closing(line):
        line.request("POST", "/accounts/login/", "no form at all", kind)
        answer = line.getresponse()
        assert answer.status == 403
        assert b"<html" in answer.read()
