"""Traces of an app that a site lacks: run in a process of that site."""

import io
import json

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

from chatsite import plugins
from chatsite.jobs import queue
from chatsite.turns.audit import FINDERS
from memory.models import Conversation

PAGES = (
    *("", "messages/2/menu/", "context/"),
    *("transcript.json", "context.json", "summaries.json"),
)
# Where the app of imports is installed.
FILES = ("export.json", "export.md")


def show():
    """Prints all of it as JSON, by its name; checks end it if they find anything."""
    call_command("check", fail_level="WARNING")
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    call_command("audit", stdout=io.StringIO())
    rules = [*FINDERS, *(r for data in plugins.app_data for r in data.audit_rules)]
    conversation = Conversation.objects.get()
    shown = {
        "summaries": conversation.summaries.filter(status="active").count(),
        "messages": conversation.messages.count(),
        "urls": "\n".join(addresses(get_resolver())),
        "audit": " ".join(getattr(r, "__name__", "") or str(r.args) for r in rules),
        "admin": " ".join(model._meta.label for model in admin.site._registry),
    }
    client = sign_in(conversation.owner)
    files = FILES if apps.is_installed("chatsite.features.importing") else ()
    for name in (
        "/",
        "/account/",
        *(address(conversation, n) for n in (*PAGES, *files)),
    ):
        shown[name] = read(client, name)
    staff = get_user_model().objects.create_superuser("staff")
    client = sign_in(staff)
    reply = conversation.messages.filter(role="assistant").first()
    pages = ("change", "figures", f"timeline/{conversation.pk}", f"request/{reply.seq}")
    for name in ("/admin/", "/admin/desk/accessevent/", *pages):
        path = name if name.startswith("/") else staff_page(conversation, name)
        shown[path] = read(client, path)
    if files:
        text = shown[address(conversation, "export.json")]
        shown["imported"] = import_into(staff, text)
    print(json.dumps(shown))  # noqa: T201


def address(conversation, name):
    return f"/c/{conversation.uuid}/{name}"


def staff_page(conversation, name):
    folder = f"/admin/memory/conversation/{conversation.pk}"
    return f"{folder}/timeline/" if "timeline" in name else f"{folder}/{name}/"


def addresses(resolver, before=""):
    for each in resolver.url_patterns:
        path = f"{before}{each.pattern}"
        if hasattr(each, "url_patterns"):
            yield from addresses(each, path)
        else:
            yield f"{path} {each.name}"


def sign_in(user):
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def read(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


def import_into(user, text):
    """Import the file and return how many messages came with it."""
    from chatsite.features.importing.outcome import KIND
    from chatsite.features.importing.storing import import_conversations

    claim = queue.add(KIND, user, f"{KIND}:{user.pk}")
    queue.begin(claim, 1)
    import_conversations(claim, io.BytesIO(text.encode()))
    return Conversation.objects.get(owner=user).messages.count()
