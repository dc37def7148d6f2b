"""Links that staff revoke: who may, what its owner reads, what is written down."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from chatsite.features.sharing import services
from chatsite.review.models import AccessEvent

from ...scenes import signed_in

pytestmark = pytest.mark.django_db
REASON = "It has <names> of customers."


@pytest.fixture
def share(conversation):
    return services.create_share(conversation)


@pytest.fixture
def revoker(staff_with):
    user = staff_with("metadata")
    user.user_permissions.add(Permission.objects.get(codename="revoke_links"))
    client = Client()
    client.force_login(user)
    return client


def page_of(share):
    return reverse("admin:sharing_share_change", args=[share.pk])


def revoke(client, share, reason=REASON):
    return client.post(page_of(share), {"reason": reason})


def test_owner_reads_that_staff_revoked_the_link_and_why(alice, revoker, share):
    assert revoke(revoker, share).status_code == 302
    shared = Client().get(reverse("shared-page", args=[share.token]))
    assert shared.status_code == 404
    assert "customers" not in shared.content.decode()
    owner = signed_in(alice)
    dialog = reverse("share", args=[share.conversation.uuid])
    for address in (dialog, reverse("account")):
        text = owner.get(address).content.decode()
        assert "Links that the administrators have revoked" in text
        assert "It has &lt;names&gt; of customers." in text
        assert share.token not in text


def test_revocation_is_in_the_access_log(revoker, share):
    revoke(revoker, share)
    event = AccessEvent.objects.get()
    assert (event.action, event.target) == ("revoke", f"share {share.pk}")
    assert event.conversation == share.conversation.uuid


def test_revocation_needs_a_reason(revoker, share):
    assert revoke(revoker, share, " ").status_code == 200
    share.refresh_from_db()
    assert share.revoked_at is None


def test_revocation_needs_the_permission(reviewer, share):
    assert 'name="reason"' not in reviewer.get(page_of(share)).content.decode()
    assert revoke(reviewer, share).status_code == 403
    share.refresh_from_db()
    assert share.revoked_at is None


def test_ended_link_stays_as_it_is(revoker, share):
    services.revoke_share(share.conversation, share.pk)
    page = revoker.get(page_of(share)).content.decode()
    assert 'name="_save"' not in page
    assert revoke(revoker, share).status_code == 403
    assert not services.revoke_as_staff(share, REASON)
    share.refresh_from_db()
    assert share.reason == ""


def test_owner_without_revoked_links_reads_nothing_of_it(alice, share):
    dialog = reverse("share", args=[share.conversation.uuid])
    for address in (dialog, reverse("account")):
        assert (
            "administrators have" not in signed_in(alice).get(address).content.decode()
        )


def test_the_download_of_the_account_has_the_reason(alice, revoker, share):
    revoke(revoker, share)
    (row,) = services.describe_shares(alice)
    assert row["reason"] == REASON
