"""Every page and fragment of the site, requested as by a browser, for tests that read
them.
"""

import json

from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from chatsite.live import fragments
from chatsite.protocol.events import Memory, State, TurnEnd
from chatsite.turns import commands, lifecycle
from memory import transcript
from tests.memory.scenes import summarise

from .scenes import HTMX, signed_in, talk_in_turns

BAD_FILE = json.dumps(
    {"format": 2, "conversation": {"uuid": "梨", "title": "梨"}, "messages": []}
)
WRONG_POLICIES = (
    {"keep": ["tokens", 0]},
    {"fan_in": 1, "recall_tokens": "梨"},
    {"important": ["(a+)+"]},
    7,
)
ACTS = ("pin", "unpin", "leave-out", "bring-back", "delete", "delete")


def make_conversation(user):
    """Make a conversation with something of everything.

    All texts are Chinese and about pears, so tests can tell them from the words of the
    page in any language.
    """
    made = transcript.create_conversation(user, title="梨", preset="langgraph")
    talk_in_turns(made, *(f"第 {n} 件事：梨。" for n in range(7)), reply="好梨。")
    first = summarise(
        made, 1, 2, text="盒子里有 77 个梨。", flags={"unsupported": ["77"]}
    )
    summarise(made, 1, 4, text="盒子里有梨。", replaces=[first])
    for error in ("timeout", "EmptySummary"):
        summarise(made, 5, 6, text="", status="failed", error=error)
    made.messages.filter(seq=5).update(excluded_at=made.created_at)
    made.messages.filter(seq=6).update(pinned_at=made.created_at)
    retry(made)
    talk_in_turns(made, "再来一个梨。", reply="好梨。")
    made.refresh_from_db()
    return made


def retry(conversation):
    last = conversation.turns.order_by("-pk").first()
    commands.regenerate_reply(conversation, last.pk)
    claim = lifecycle.claim(conversation.pk)
    failed = lifecycle.TurnResult("failed", "", error="timeout")
    lifecycle.finish(claim, failed)


class Reader:
    """One browser; `pages` gives what it is shown, by a name for the failure."""

    def __init__(self, user, conversation, language=""):
        self.user, self.conversation, self.language = user, conversation, language
        self.mine, self.stranger = self._browser(signed_in(user)), self._browser()
        self.uuid = conversation.uuid

    def _browser(self, client=None):
        client = client or Client(enforce_csrf_checks=False)
        if self.language:
            client.cookies["django_language"] = self.language
        return client

    def get(self, name, *args, query=None, **kwargs):
        address = reverse(name, args=args or None, kwargs=kwargs or None)
        headers = HTMX if name.startswith("memory-") else {}
        return self.mine.get(address, query, headers=headers)

    def post(self, view, data=None, **kwargs):
        return self.mine.post(reverse(view, kwargs=kwargs), data, headers=HTMX)

    def memory(self, name, **kwargs):
        return self.get(f"memory-{name}", uuid=self.uuid, **kwargs)

    def act(self, view, data=None, **kwargs):
        return self.post(f"memory-{view}", data, uuid=self.uuid, **kwargs)

    def pages(self):
        for part in (self.outside, self.split, self.looked_at, self.done, self.library):
            yield from part()
        yield from self.errors()

    def outside(self):
        for name in ("login", "signup"):
            yield name, self.stranger.get(reverse(name))
            yield (
                f"{name}, wrong",
                self.stranger.post(reverse(name), {"username": "梨"}),
            )
        wrong = {"username": self.user.username, "password": "梨"}
        for _ in range(2):
            answer = self.stranger.post(reverse("login"), wrong)
        yield "locked out", answer

    def split(self):
        for reply in ("", 4, 14):
            query = {"reply": reply} if reply else None
            yield (
                f"split page {reply}",
                self.get("conversation-detail", self.uuid, query=query),
            )
        empty = transcript.create_conversation(self.user)
        yield "empty", self.get("conversation-detail", empty.uuid)
        commands.submit_message(empty, text="梨", client_id="1")
        commands.submit_message(empty, text="梨", client_id="2")
        yield "queued", self.get("conversation-detail", empty.uuid)
        yield "row menu", self.get("conversation-menu", self.uuid)
        yield "branch", self.get("conversation-detail", self.branch())

    def branch(self):
        address = reverse("conversation-branch", args=[self.uuid])
        return self.mine.post(address, {"seq": 3}).url.strip("/").split("/")[-1]

    def looked_at(self):
        yield "versions", self.memory("summaries")
        yield "diff", self.memory("diff", version=2)
        yield "no diff", self.memory("diff", version=1)
        yield "edit", self.memory("edit", version=2)
        for seq in (1, 5, 6, 14):
            yield (
                f"menu of {seq}",
                self.get("conversation-message-menu", self.uuid, seq),
            )
        yield "preview", self.memory("preview", seq=8)
        yield "no preview", self.memory("preview", seq=1)
        for words in ("梨", "个", "没有的梨"):
            yield f"found {words}", self.memory("find", query={"q": words})
        yield "moment", self.memory("moment", query={"reply": 8})
        for wrong in WRONG_POLICIES:
            data = {"preset": "layered", "overrides": json.dumps(wrong)}
            yield f"policy {wrong}", self.act("estimate", data)
        for preset in ("layered", "langgraph"):
            yield f"estimate {preset}", self.act("estimate", {"preset": preset})

    def done(self):
        for name in ACTS:
            yield name, self.act("message", seq=9, name=name)
        yield "rewrite", self.act("rewrite", {"text": "梨。"}, version=2)
        yield "rewrite again", self.act("rewrite", {"text": "梨。"}, version=2)
        yield "restore", self.act("restore", version=1)
        yield "restore again", self.act("restore", version=1)
        yield "restore a failed one", self.act("restore", version=3)
        yield "reinstate", self.act("reinstate", {"versions": "1,3"})
        yield "accept", self.act("accept", {"signature": "梨", "text": "梨。"})
        yield "rebuild", self.act("rebuild")
        policy = {"preset": "layered", "overrides": "null"}
        yield "policy", self.post("conversation-policy", policy, uuid=self.uuid)
        yield (
            "no title",
            self.post("conversation-rename", {"title": ""}, uuid=self.uuid),
        )

    def library(self):
        yield "list", self.get("conversation-list")
        yield "searched", self.get("conversation-list", query={"q": "梨"})
        yield "archived", self.get("conversation-list", query={"view": "archived"})
        yield "account", self.get("account")
        yield "facts", self.get("facts")
        yield "wrong password", self.mine.post(reverse("account-delete"))
        yield "password", self.get("password-change")
        yield "import", self.get("import")
        for text in ("{", "[]", BAD_FILE):
            file = SimpleUploadedFile("a.json", text.encode())
            yield (
                f"import {text[:9]}",
                self.mine.post(reverse("import"), {"file": file}),
            )
        yield "export", self.get("conversation-export-md", self.uuid)
        yield "deleted", self.post("conversation-delete", uuid=self.uuid)

    def errors(self):
        yield "404", self.mine.get("/c/nowhere/")
        yield "400", self.mine.get("/", headers={"host": "evil.example"})
        guarded = Client(enforce_csrf_checks=True)
        guarded.cookies = self.mine.cookies
        yield "403, forged", guarded.post(reverse("import"))
        for _ in range(7):
            answer = self.mine.post(reverse("conversation-create"))
        yield "429", answer
        for name in ("403", "500", "503"):
            yield name, render_to_string(f"{name}.html")


def fragments_of(conversation):
    """Return the fragments that a socket sends to the page."""
    turn = conversation.turns.order_by("-pk").first()
    page = fragments.LivePage()
    yield "sync", "".join(page.sync(conversation))
    for event in (
        State(turn.pk, "running"),
        TurnEnd(turn.pk, "done", 1, ""),
        TurnEnd(turn.pk, "failed", None, ""),
        Memory(1, "folded"),
        Memory(None, "failed"),
    ):
        status = fragments.status_of(event, conversation.pk)
        yield f"{event}", page.draw_turn(conversation.pk, turn.pk, status)
    yield "title", fragments.render_title(conversation)
