"""Staff with the rights that a test asks for."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from memory import transcript
from tests.memory.scenes import summarise, talk
from tests.remembered import remembered

CODENAMES = {
    "metadata": "view_metadata",
    "content": "read_content",
    "export": "export_conversations",
    "purge": "purge_conversations",
}


@pytest.fixture
def staff_with(django_user_model):
    """staff_with("metadata", "content") -> one of the staff who may do just that."""

    def make(*rights):
        name = "-".join(["staff", *rights])
        user = django_user_model.objects.create_user(name, is_staff=True)
        codenames = [CODENAMES[right] for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return user

    return make


@pytest.fixture
def reviewer(client, staff_with):
    """A client of a staff member who may see numbers and read texts."""
    client.force_login(staff_with("metadata", "content"))
    return client


@pytest.fixture
def page(reviewer):
    """page("summary_change", pk, **params) -> its text, as the reviewer sees it."""

    def get(name, *args, **params):
        response = reviewer.get(reverse(f"admin:memory_{name}", args=args), params)
        assert response.status_code == 200
        return response.content.decode()

    return get


@pytest.fixture
@remembered
def conversation(alice):
    conversation = transcript.create(alice, title="Audited")
    talk(conversation, 4)
    return conversation


@pytest.fixture
@remembered
def versions(conversation):
    """v1 over the first two turns, v2 extending it over two more."""
    first = summarise(conversation, 1, 4, text="The first text.")
    second = summarise(conversation, 1, 8, replaces=[first], text="The second text.")
    return first, second
