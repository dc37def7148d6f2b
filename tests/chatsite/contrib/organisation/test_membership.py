"""The groups of a user at a provider, and what they do to the account."""

import pytest
from django.contrib.auth.models import Group

from chatsite.contrib.organisation.configuration import OidcProvider
from chatsite.contrib.organisation.membership import apply_groups

pytestmark = pytest.mark.django_db
CORP = OidcProvider(
    **{"id": "corp", "name": "Corp", "issuer": "https://id.example", "client_id": "a"},
    staff={"reviewers": ["metadata"]},
)


@pytest.mark.parametrize("name", ["Corp: reviewers", "CORP: x", "corp", "corp:x"])
def test_groups_that_staff_gave_stay(alice, name):
    """Also where the database compares without case."""
    alice.groups.add(Group.objects.create(name=name))
    assert apply_groups(alice, CORP, {"reviewers"})
    assert apply_groups(alice, CORP, set())
    assert [group.name for group in alice.groups.all()] == [name]
    assert not alice.is_staff
