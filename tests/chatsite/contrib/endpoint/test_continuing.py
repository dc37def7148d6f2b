"""A conversation of the site that goes on in a coding client, and comes back."""

import html
import re
import shlex
import tomllib

import pytest
from django.urls import reverse

from chatsite.contrib.endpoint import keys
from memory.models import Conversation
from memory.transcript import create_conversation
from tests.chatsite.scenes import page_of, talk_in_turns

from .asgi_client import send

pytestmark = pytest.mark.django_db(transaction=True)


def test_menu_leads_to_commands_that_name_the_download(alice, client):
    conversation = create_conversation(alice)
    talk_in_turns(conversation, "Hello")
    client.force_login(alice)
    address = reverse("endpoint-continue", args=[conversation.uuid])
    assert f'href="{address}"' in page_of(client, conversation)
    page = client.get(address).content.decode()
    link = reverse("conversation-export-md", args=[conversation.uuid])
    assert f'href="{link}" download' in page
    name = re.search('filename="(.+?)"', client.get(link)["Content-Disposition"])[1]
    claude, codex = map(
        html.unescape, re.findall("<pre.+?>(.+?)</pre>", page, re.DOTALL)
    )
    for command in (claude, codex):
        words = shlex.split(command)
        assert words[-1] == f"Read {name}, our conversation so far. Continue it."
    assert "ANTHROPIC_BASE_URL=http://testserver\n" in claude
    options = [word for word in shlex.split(codex) if word.startswith("model_provider")]
    told = tomllib.loads("\n".join(options[1:]))["model_providers"]["windowpane"]
    assert told == {
        **{"name": "Windowpane", "base_url": "http://testserver/v1"},
        **{"env_key": "OPENAI_API_KEY", "wire_api": "responses"},
    }
    assert options[0] == "model_provider=windowpane"


def test_work_of_the_client_comes_back_into_the_list(alice, upstream, client):
    talk_in_turns(create_conversation(alice), "Hello")
    _row, key = keys.create_api_key(alice, "Claude Code")
    asked = {"role": "user", "content": "Read conversation-1.md. Continue it."}
    reply = {"role": "assistant", "content": f"Reply to: {asked['content']}"}
    send(key, asked)
    send(key, asked, reply, {"role": "user", "content": "Go on."})
    found = Conversation.objects.order_by("pk").last()
    assert found.owner == alice
    client.force_login(alice)
    assert "Claude Code" in client.get("/").content.decode()


def test_page_is_of_the_owner_alone(alice, bob, client):
    conversation = create_conversation(alice)
    talk_in_turns(conversation, "Hello")
    client.force_login(bob)
    address = reverse("endpoint-continue", args=[conversation.uuid])
    assert client.get(address).status_code == 404
