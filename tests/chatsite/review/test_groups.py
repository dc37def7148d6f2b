"""Groups of staff, made by a command and by nothing else."""

import io

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from chatsite.review.management.commands.create_groups import GROUPS, list_codes
from chatsite.review.rights import Rights, rights_of

pytestmark = pytest.mark.django_db


def run(*options):
    out = io.StringIO()
    call_command("create_groups", *options, stdout=out)
    return out.getvalue()


def codes_of(name):
    return list_codes(Group.objects.get(name=name))


def test_upgrade_creates_no_groups():
    assert not Group.objects.filter(name__in=GROUPS).exists()


def test_command_creates_groups_with_their_permissions():
    said = run()
    assert codes_of("auditors") == {"memory.view_metadata"}
    assert codes_of("moderators") >= {"memory.read_content", "sharing.revoke_links"}
    assert "reviewers: created\n  memory.read_content\n  memory.view_meta" in said


@pytest.mark.parametrize(
    ("name", "rights"),
    [
        ("auditors", Rights(metadata=True)),
        ("reviewers", Rights(metadata=True, content=True)),
        ("moderators", Rights(metadata=True, content=True)),
        ("data protection", Rights(metadata=True, export=True, purge=True)),
    ],
)
def test_group_allows_its_pages(django_user_model, name, rights):
    run()
    user = django_user_model.objects.create_user("sue", is_staff=True)
    user.groups.set(Group.objects.filter(name=name))
    assert rights_of(user) == rights


def test_existing_group_stays_as_it_is_unless_it_is_reset():
    group = Group.objects.create(name="reviewers")
    group.permissions.add(Permission.objects.get(codename="view_user"))
    said = run()
    assert codes_of("reviewers") == {"auth.view_user"}
    assert "reviewers: is there\n  auth.view_user (besides)\n" in said
    assert "  memory.read_content (missing: --reset gives it)\n" in said
    run("--reset")
    assert codes_of("reviewers") == set(GROUPS["reviewers"])


def test_a_second_time_changes_nothing():
    run()
    before = {name: codes_of(name) for name in GROUPS}
    assert "created" not in run()
    assert {name: codes_of(name) for name in GROUPS} == before
