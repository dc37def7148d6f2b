"""The lists of the admin, in sections."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

pytestmark = pytest.mark.django_db


def sections(client):
    """The lists of the first page, by their section."""
    text = client.get(reverse("admin:index")).content.decode()
    parts = re.split(r'<div class="app-(\w+) module', text)
    names = {
        section: re.findall(r'<tr class="model-(\w+)', part)
        for section, part in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {section: found for section, found in names.items() if found}


def test_lists_of_leaves_stand_in_the_sections_of_the_core(admin_client):
    found = sections(admin_client)
    assert set(found) == {"auth", "chat", "memory", "desk"}
    assert {"user", "group", "accessattempt", "invitation"} <= set(found["auth"])
    assert {"conversation", "feedback", "rule", "share"} <= set(found["memory"])


def test_list_stands_alone_when_its_section_is_hidden(client, staff_with):
    user = staff_with()
    user.user_permissions.add(Permission.objects.get(codename="view_announcement"))
    client.force_login(user)
    assert sections(client) == {"announcements": ["announcement"]}


def test_the_page_of_an_app_has_its_own_lists(admin_client):
    page = admin_client.get(reverse("admin:app_list", args=["feedback"]))
    assert page.status_code == 200
    listed = re.findall(r'<tr class="model-(\w+)', page.content.decode())
    assert "feedback" in listed
