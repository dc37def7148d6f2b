"""What is said of an error, in words."""

from chatsite.protocol.errors import explain_code


def test_who_tries_a_server_at_home_reads_where_it_was_looked_for(settings):
    settings.DEBUG = True
    settings.OPENAI_BASE_URL = "http://me:secret@127.0.0.1:11434/v1"
    said = explain_code("unavailable")
    assert "OPENAI_BASE_URL is http://127.0.0.1:11434/v1:" in said
    assert "secret" not in said
    assert "OPENAI" not in explain_code("timeout")


def test_a_site_names_no_address_to_people(settings):
    settings.DEBUG = False
    settings.OPENAI_BASE_URL = "http://10.0.0.1/v1"
    assert "10.0.0.1" not in explain_code("unavailable")
