"""A conversation of Alice, and her browser."""

import pytest
from django.test import Client

from memory import transcript

from .scenes import signed_in, talk_in_turns


@pytest.fixture
def conversation(alice):
    made = transcript.create(alice, title="Trip to Kyoto")
    talk_in_turns(made, "Hello", "What is my budget?")
    return made


@pytest.fixture
def client(alice):
    return signed_in(alice)


@pytest.fixture
def session(alice):
    client = Client()
    client.force_login(alice)
    return client.cookies["sessionid"].value
