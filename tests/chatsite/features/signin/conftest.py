"""A site that sends mail, and the mails that it has sent."""

import re

import pytest
from django.core import mail as outbox_module

from chatsite.features.signin import mail


@pytest.fixture
def mailing(settings):
    settings.EMAIL_URL = "smtp://mail.example.org:25"
    settings.DEFAULT_FROM_EMAIL = "chat@example.org"
    settings.SITE_ORIGINS = ["https://chat.example.org"]
    queue = mail.waiting
    yield
    # What no test has waited for would be the first mail of the next one.
    queue.join()


@pytest.fixture
def mails(mailing):
    """mails() -> those that were sent so far, each with its link."""

    def sent():
        mail.waiting.join()
        return outbox_module.outbox

    return sent


@pytest.fixture
def link_in():
    """link_in(mail) -> the path of the link in it."""

    def find(sent):
        [path] = re.findall(
            r"https://chat\.example\.org(/accounts/link/\S+)", sent.body
        )
        return path

    return find
