"""Errors, in words."""

import subprocess
import sys

from chatsite.protocol.errors import explain_code

from ...servers import ROOT, Site


def test_unavailable_names_the_server_address_when_debugging(settings):
    settings.DEBUG = True
    settings.OPENAI_BASE_URL = "http://me:secret@127.0.0.1:11434/v1"
    said = explain_code("unavailable")
    assert "OPENAI_BASE_URL is http://127.0.0.1:11434/v1:" in said
    assert "secret" not in said
    assert "OPENAI" not in explain_code("timeout")


def test_unavailable_names_no_address_on_a_site(settings):
    settings.DEBUG = False
    settings.OPENAI_BASE_URL = "http://10.0.0.1/v1"
    assert "10.0.0.1" not in explain_code("unavailable")


def test_code_without_words_is_named():
    said = explain_code("policy_gone:whatever it said")
    assert said == (
        "It ended with the code “policy_gone”, which this site can't explain."
    )
    assert "x" * 41 not in explain_code("x" * 1_000)


def test_ends_of_clients_are_explained_where_endpoint_is_off():
    code = (
        "import django; django.setup()\n"
        "from chatsite.protocol.errors import explain_code\n"
        "print(explain_code('client_gone'))"
    )
    env = Site({"DATABASE_URL": "sqlite://", "EXTRAS": ""}).environment()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert "The client stopped reading" in done.stdout, done.stderr
