"""Staff of an older installation keep what they could do, under the new names."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from chatsite.review.rights import Rights, rights_of

carry = import_module("chatsite.review.migrations.0002_carry_permissions").carry
OLD = ("memory.view_conversation", "memory.view_message", "memory.change_summary")


@pytest.fixture
def old(db):
    """Django's own permissions on the tables, as they were made before the desk."""

    def make(name):
        app, _, codename = name.partition(".")
        kind = ContentType.objects.get(app_label=app, model=codename.split("_")[1])
        values = {"content_type": kind, "codename": codename, "name": codename}
        return Permission.objects.create(**values)

    return {name: make(name) for name in (*OLD, "chat.view_turn")}


def give(django_user_model, *permissions):
    user = django_user_model.objects.create_user("carol", is_staff=True)
    user.user_permissions.set(permissions)
    carry(apps, None)
    return django_user_model.objects.get(pk=user.pk)


@pytest.mark.parametrize(
    ("had", "has"),
    [
        ((), Rights()),
        (("memory.view_conversation",), Rights(metadata=True)),
        (("chat.view_turn",), Rights(metadata=True)),
        (("memory.change_summary",), Rights()),
        (("memory.view_message",), Rights(metadata=True, content=True)),
        ((*OLD, "chat.view_turn"), Rights(metadata=True, content=True)),
    ],
)
def test_whoever_could_see_sees(django_user_model, old, had, has):
    user = give(django_user_model, *(old[name] for name in had))
    assert rights_of(user) == has


def test_groups_are_carried_too(django_user_model, old):
    group = Group.objects.create(name="auditors")
    group.permissions.add(old["memory.view_message"])
    user = give(django_user_model)
    user.groups.add(group)
    fresh = django_user_model.objects.get(pk=user.pk)
    assert rights_of(fresh) == Rights(metadata=True, content=True)


def test_what_opens_nothing_any_more_goes_from_the_list(django_user_model, old):
    give(django_user_model)
    rows = Permission.objects.filter(content_type__app_label="memory")
    assert set(rows.values_list("codename", flat=True)) == {
        *("view_metadata", "read_content"),
        *("export_conversations", "purge_conversations"),
    }


def test_a_second_time_changes_nothing(django_user_model, old):
    user = give(django_user_model, old["memory.view_message"])
    carry(apps, None)
    assert set(user.user_permissions.values_list("codename", flat=True)) == {
        *("view_metadata", "read_content"),
    }
