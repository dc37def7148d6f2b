"""The access log: what is written, who finds it, and what its owner gets to see."""

import uuid

import pytest
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from chatsite.accounts import account
from chatsite.review import access_log
from chatsite.review.models import AccessEvent
from memory import library, transcript

LIST = "admin:desk_accessevent_changelist"


@pytest.fixture
def event(conversation, staff):
    """Return an access that was recorded before this test began."""
    return make_event(staff, conversation)


def make_event(user, conversation, action="view", target="message #3"):
    return AccessEvent.objects.create(
        user=user,
        username=user.username,
        action=action,
        conversation=conversation.uuid,
        owner=conversation.owner,
        target=target,
        address="192.0.2.7",
    )


def rows(client, **params):
    return client.get(reverse(LIST), params).context["cl"].result_count


class TestWriting:
    def test_a_page_is_written_once(self, page, versions):
        page("summary_change", versions[0].pk)
        written = AccessEvent.objects.get()
        conversation = versions[0].conversation
        assert written.conversation == conversation.uuid
        assert written.owner == conversation.owner
        assert written.username == "staff-metadata-content"
        assert (written.action, written.address) == ("view", "127.0.0.1")

    def test_access_names_the_message(self, page, conversation):
        page("message_change", conversation.messages.get(seq=3).pk)
        assert AccessEvent.objects.get().target == "message #3"

    def test_a_list_is_written_once_for_each_conversation(self, page, conversation):
        other = transcript.create_conversation(conversation.owner, title="Other")
        page("conversation_changelist")
        seen = set(AccessEvent.objects.values_list("conversation", flat=True))
        assert seen == {conversation.uuid, other.uuid}
        page("message_changelist")
        assert AccessEvent.objects.count() == 3

    def test_a_prompt_belongs_to_no_conversation(self, page, conversation):
        page("prompt_changelist")
        written = AccessEvent.objects.get()
        assert (written.conversation, written.target) == (None, "list prompt")

    def test_numbers_alone_are_not_written(self, client, staff_with, conversation):
        client.force_login(staff_with("metadata"))
        client.get(reverse("admin:memory_conversation_changelist"))
        page = reverse("admin:memory_conversation_change", args=[conversation.pk])
        assert client.get(page).status_code == 200
        assert not AccessEvent.objects.exists()

    def test_page_shows_nothing_when_the_access_cannot_be_logged(
        self, client, reviewer, conversation, monkeypatch
    ):
        def fail(*args, **kwargs):
            raise RuntimeError("no log")

        monkeypatch.setattr(AccessEvent, "save", fail)
        page = reverse("admin:memory_conversation_change", args=[conversation.pk])
        with pytest.raises(RuntimeError, match="no log"):
            reviewer.get(page)

    @pytest.mark.parametrize(
        ("sent", "stored"),
        [
            ("198.51.100.9", "198.51.100.9"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::"),
            ("nonsense", None),
            ("<b>", None),
        ],
    )
    def test_access_has_the_address_of_the_reader(
        self, sent, stored, settings, staff, conversation
    ):
        settings.BEHIND_PROXY = True
        request = RequestFactory(REMOTE_ADDR=sent).get("/", HTTP_X_FORWARDED_FOR=sent)
        request.user = staff
        access_log.record_access(
            request, access_log.StaffAction.REVIEW, conversation, "x" * 200
        )
        written = AccessEvent.objects.get()
        assert (written.address, len(written.target)) == (stored, 100)


class TestKeeping:
    def test_access_outlives_the_conversation(self, event, conversation):
        uuid = conversation.uuid
        library.erase_conversation(conversation)
        assert AccessEvent.objects.get().conversation == uuid

    def test_access_outlives_both_accounts(self, event, conversation, staff):
        account.delete_account(conversation.owner)
        staff.delete()
        event.refresh_from_db()
        assert (event.user, event.owner, event.username) == (None, None, "staff")

    def test_access_cannot_be_changed_or_deleted(self, event):
        for act in (
            event.save,
            event.delete,
            AccessEvent.objects.all().delete,
            lambda: AccessEvent.objects.update(username="other"),
        ):
            with pytest.raises(TypeError):
                act()

    def test_a_superuser_neither(self, client, event, staff):
        client.force_login(staff)
        for act, args in (("add", []), ("change", [event.pk]), ("delete", [event.pk])):
            url = reverse(f"admin:desk_accessevent_{act}", args=args)
            assert client.post(url, {"post": "yes"}).status_code == 403
        action = {"action": "delete_selected", "_selected_action": [event.pk]}
        client.post(reverse(LIST), {**action, "post": "yes"})
        assert AccessEvent.objects.count() == 1


class TestFinding:
    @pytest.fixture
    def viewer(self, client, staff_with, event):
        client.force_login(staff_with("metadata"))
        return client

    def test_search_finds_a_conversation_or_an_exact_name(self, viewer, event):
        for found in (event.conversation, event.conversation.hex, "staff", "alice"):
            assert rows(viewer, q=str(found)) == 1
            assert rows(viewer, q=str(found)[:8]) == 1
        for other in (uuid.uuid4(), "staf", "alic", "message", "'; --", "192"):
            assert rows(viewer, q=str(other)) == 0

    def test_filters_find_an_action_a_date_and_a_user(
        self, viewer, event, staff, alice
    ):
        assert rows(viewer, action__exact="view") == 1
        assert rows(viewer, action__exact="purge") == 0
        assert rows(viewer, created_at__gte="2020-01-01 00:00:00+00:00") == 1
        assert rows(viewer, created_at__gte="2120-01-01 00:00:00+00:00") == 0
        assert rows(viewer, staff=staff.pk) == 1
        someone = get_user_model().objects.get(username="staff-metadata")
        assert rows(viewer, staff=someone.pk) == 0

    def test_a_person_who_has_left_is_found_by_name(self, viewer, staff):
        staff.delete()
        assert rows(viewer, q="staff") == 1


class TestOwner:
    @pytest.fixture
    def owner(self, event, conversation):
        client = Client()
        client.force_login(conversation.owner)
        return client

    def text(self, client, **params):
        return client.get(reverse("account"), params).content.decode()

    def test_people_see_what_staff_did_and_when(self, owner, event):
        text = self.text(owner)
        assert "Audited</a>" in text
        assert "read: message #3" in text
        assert f'<time datetime="{event.created_at:%Y-%m-%dT%H:%M}' in text
        assert ">staff</td>" not in text

    def test_names_are_shown_where_the_site_wants_it(self, owner, settings):
        settings.STAFF_ACCESS_SHOWN = "names"
        assert ">staff</td>" in self.text(owner)

    def test_account_page_hides_accesses_if_the_setting_says_so(self, owner, settings):
        settings.STAFF_ACCESS_SHOWN = "no"
        assert "message #3" not in self.text(owner)

    def test_account_page_hides_accesses_to_others(self, event, bob):
        client = Client()
        client.force_login(bob)
        assert "Nothing so far." in self.text(client)

    def test_account_page_splits_accesses_into_pages(self, owner, conversation, staff):
        for number in range(25):
            make_event(staff, conversation, target=f"message #{number + 100}")
        first, second = self.text(owner), self.text(owner, accesses=2)
        assert "message #124" in first
        assert "message #3<" not in first
        assert "message #3<" in second
        assert "message #124" in self.text(owner, accesses="x")

    def test_list_of_conversations_is_one_line_for_each_look(
        self, owner, conversation, page
    ):
        for number in range(38):
            transcript.create_conversation(conversation.owner, title=f"Talk {number}")
        page("conversation_changelist")
        QuerySet(AccessEvent).update(created_at=timezone.now())
        text = self.text(owner)
        assert text.count("read: title (in a list)") == 1
        assert "<summary>39 conversations</summary>" in text
        assert text.count(">Talk 37</a>") == 1
        # Texts keep a line each.
        assert text.count("read: message #3") == 1

    def test_an_erased_conversation_has_no_title(self, owner, conversation):
        number = str(conversation.uuid)[:8]
        library.erase_conversation(conversation)
        assert f"<code>{number}</code>" in self.text(owner)


@pytest.mark.parametrize("readable", [True, False])
def test_the_chat_page_says_whether_staff_can_read(alice, settings, readable):
    settings.STAFF_CAN_READ_CHATS = readable
    client = Client()
    client.force_login(alice)
    page = reverse(
        "conversation-detail", args=[transcript.create_conversation(alice).uuid]
    )
    text = client.get(page).content.decode()
    assert ("Visible to you and the administrators" in text) is readable
    assert ("Only you can read this conversation" in text) is not readable
