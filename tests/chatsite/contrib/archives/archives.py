"""Conversations in the forms of other chats' exports, each string of which has a word
of its own: what a random one of their users can have in an archive.
"""

import random
from collections.abc import Iterator
from typing import Any

ROOT = "00000000-0000-4000-8000-000000000000"
Item = dict[str, Any]


class Archive:
    """A conversation, with every word of its messages by where it was said: in the open
    branch, in other ones, or where people do not see it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed, self.count = seed, 0
        self.open: list[str] = []
        self.hidden: list[str] = []
        self.others: list[str] = []
        self.into = self.open

    def say(self, *around: str) -> str:
        """A string with a word that no other string has."""
        self.count += 1
        word = f"w{self.seed}x{self.count}y"
        self.into.append(word)
        around = around or self.chance.choice(
            [("", ""), ("Ist ", " schön?"), ("**", "**"), ("`", "`"), ("汉字 ", " 🦊")]
        )
        return f"{around[0]}{word}{around[1]}"

    def pick(self, *makers: Any) -> Any:
        return self.chance.choice(makers)()

    def some(self, make: Any, most: int = 3) -> list[Any]:
        return [make() for _ in range(self.chance.randrange(most + 1))]


class ChatGPT(Archive):
    """Trees of nodes, whose messages have contents of many types."""

    def make(self) -> Item:
        self.nodes: dict[str, Item] = {}
        last = self.add(None, None)
        for _ in range(self.chance.randrange(1, 6)):
            last = self.make_turn(last)
        return {
            "title": "Talk",
            "conversation_id": f"gpt-{self.seed}",
            "create_time": 1.77e9,
            "current_node": last,
            "mapping": self.nodes,
        }

    def add(self, parent: str | None, message: Item | None) -> str:
        name = f"n{len(self.nodes)}"
        node = {"id": name, "parent": parent, "children": [], "message": message}
        self.nodes[name] = node
        if parent is not None:
            self.nodes[parent]["children"].append(name)
        return name

    def message(self, role: str, content: Item, to: str = "all", **more: Any) -> Item:
        author = {"role": role, "name": more.pop("name", None), "metadata": {}}
        said = {"author": author, "content": content, "recipient": to, "metadata": {}}
        return {**said, "create_time": 1.77e9, "status": "finished_successfully"} | more

    def make_turn(self, last: str) -> str:
        if self.chance.random() < 0.3:
            last = self.add(last, self.make_hidden())
        if self.chance.random() < 0.2:
            self.add_other(last, "user")
        last = self.add(
            last, self.message("user", self.make_question(), **self.files())
        )
        if self.chance.random() < 0.2:
            self.add_other(last, "assistant")
        for _ in range(self.chance.randrange(4)):
            last = self.make_step(last)
        content = self.pick(self.make_text, self.make_text, self.make_spoken)
        return self.add(last, self.message("assistant", content, **self.cite()))

    def add_other(self, parent: str, role: str) -> None:
        self.into = self.others
        self.add(parent, self.message(role, self.make_text()))
        self.into = self.open

    def make_hidden(self) -> Item:
        self.into = self.hidden
        kind = self.chance.choice(["user_editable_context", "model_editable_context"])
        if self.chance.random() < 0.4:
            made = self.message("system", self.make_text())
        else:
            content = {"content_type": kind, "user_profile": self.say()}
            made = self.message("user", content)
            made["metadata"] = {"is_visually_hidden_from_conversation": True}
        self.into = self.open
        return made

    def files(self) -> Item:
        names = self.some(lambda: self.say("", ".pdf"), 1)
        files = [
            {"id": "file-9", "name": n, "mime_type": "application/pdf"} for n in names
        ]
        return {"metadata": {"attachments": files}}

    def make_question(self) -> Item:
        return self.pick(self.make_text, self.make_spoken, self.make_parts)

    def make_text(self) -> Item:
        return {"content_type": "text", "parts": [self.say(), *self.some(self.say, 1)]}

    def make_spoken(self) -> Item:
        heard = {"content_type": "audio_transcription", "text": self.say()}
        sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f"}
        film = {
            "content_type": "real_time_user_audio_video_asset_pointer",
            "frames_asset_pointers": [],
            "audio_asset_pointer": sound,
        }
        parts = [heard, self.chance.choice([sound, film])]
        self.chance.shuffle(parts)
        return {"content_type": "multimodal_text", "parts": parts}

    def make_parts(self) -> Item:
        image = {
            "content_type": "image_asset_pointer",
            "asset_pointer": "file-service://file-abc",
        }
        odd = {
            "content_type": "future_part",
            "caption": self.say(),
            "deep": [self.say()],
        }
        parts = [self.say(), odd, image, None, 7]
        self.chance.shuffle(parts)
        return {"content_type": "multimodal_text", "parts": parts}

    def make_step(self, last: str) -> str:
        make = self.chance.choice([self.think, self.call, self.show_code, self.answer])
        for message in make():
            last = self.add(last, message)
        return last

    def think(self) -> Iterator[Item]:
        thought = {"summary": self.say(), "content": self.say(), "finished": True}
        thought["chunks"] = self.chance.choice([[], [thought["content"]]])
        content = {"content_type": "thoughts", "thoughts": [thought]}
        yield self.message("assistant", content)
        recap = {"content_type": "reasoning_recap", "content": self.say()}
        yield self.message("assistant", recap)

    def show_code(self) -> Iterator[Item]:
        text = self.say("print('```", "')")
        content = {"content_type": "code", "language": "python", "text": text}
        yield self.message("assistant", content)

    def answer(self) -> Iterator[Item]:
        """Return an answer in a form that is unknown here."""
        content = {"content_type": "future_card", "headline": self.say(), "rows": []}
        content["rows"] = [{"label": self.say(), "value": self.say()}]
        yield self.message("assistant", content)

    def call(self) -> Iterator[Item]:
        name = self.chance.choice(
            ["web.run", "python", "canmore.create_textdoc", "bio"]
        )
        if name == "python":
            asked = {"content_type": "code", "language": "python", "text": self.say()}
        else:
            asked = {"content_type": "code", "text": f'{{"q": "{self.say("", "")}"}}'}
        if self.chance.random() < 0.8:
            yield self.message("assistant", asked, name)
        else:
            self.open.pop()
        for result in [self.make_result(), *self.some(self.make_result, 1)]:
            yield self.message("tool", result, name=name)

    def make_result(self) -> Item:
        return self.pick(
            self.make_text,
            lambda: {"content_type": "execution_output", "text": self.say()},
            self.make_page,
            lambda: {"content_type": "tether_browsing_display", "result": self.say()},
            lambda: {
                "content_type": "computer_output",
                "state": {"url": self.say("https://a.test/", ""), "title": self.say()},
            },
            lambda: {"content_type": "system_error", "name": self.say(), "text": "No"},
        )

    def make_page(self) -> Item:
        address = self.say("https://a.test/", "")
        page = {"url": address, "domain": self.say(), "title": self.say()}
        page |= {"text": self.say(), "snippet": self.say()}
        kind = self.chance.choice(["sonic_webpage", "tether_quote"])
        return {"content_type": kind, **page}

    def cite(self) -> Item:
        def page() -> Item:
            return {"url": self.say("https://b.test/", ""), "title": self.say("", "")}

        footnote = {"type": "sources_footnote", "sources": self.some(page)}
        group = {"type": "grouped_webpages", "items": self.some(page, 1)}
        older = [{"metadata": {"type": "webpage", **page()}}]
        found = {"content_references": [footnote, group], "citations": older}
        return {"metadata": {"model_slug": "gpt-5-2", **found}}


class Claude(Archive):
    """Lists of messages in blocks, which know their parents."""

    def make(self) -> Item:
        self.messages: list[Item] = []
        last = ROOT
        for _ in range(self.chance.randrange(1, 6)):
            for role, make in (("human", self.ask), ("assistant", self.answer)):
                if self.chance.random() < 0.2:
                    self.into = self.others
                    self.add(role, {"content": [self.make_text()]}, last)
                    self.into = self.open
                last = self.add(role, make(), last)
        item = {"uuid": f"claude-{self.seed}", "name": "Talk"}
        return {**item, "chat_messages": self.messages}

    def add(self, role: str, said: Item, parent: str) -> str:
        own = f"m{len(self.messages)}"
        texts = [each["text"] for each in said["content"] if each["type"] == "text"]
        whole = {"uuid": own, "sender": role, "parent_message_uuid": parent}
        whole |= {"text": "\n\n".join(texts), "attachments": [], "files": []}
        self.messages.append({**whole, "created_at": "2026-05-04T10:00:00Z", **said})
        return own

    def ask(self) -> Item:
        files = self.some(lambda: {"file_name": self.say("", ".pdf")}, 1)
        images = self.some(lambda: {"file_name": self.say("", ".png")}, 1)
        read = self.some(
            lambda: {
                "file_name": self.say("", ".txt"),
                "file_type": "txt",
                "extracted_content": self.say(),
            },
            1,
        )
        texts = [self.make_text()] if not files or self.chance.random() < 0.5 else []
        return {"content": texts, "files": files + images, "attachments": read}

    def make_text(self) -> Item:
        return {"type": "text", "text": self.say(), "citations": []}

    def answer(self) -> Item:
        makers = [self.make_text, self.think, self.cite, self.be_new]
        blocks = [self.pick(*makers) for _ in range(self.chance.randrange(1, 4))]
        for number in range(self.chance.randrange(3)):
            blocks += self.call(f"t{len(self.messages)}-{number}")
        return {"content": [*blocks, self.make_text()]}

    def think(self) -> Item:
        summaries = [{"summary": self.say()}]
        return {"type": "thinking", "thinking": self.say(), "summaries": summaries}

    def cite(self) -> Item:
        page = {"url": self.say("https://c.test/", ""), "title": self.say("", "")}
        return {**self.make_text(), "citations": [{"uuid": "1", "details": page}]}

    def be_new(self) -> Item:
        """Change the file into a form that is unknown here."""
        return {"type": "future_block", "headline": self.say(), "rows": [self.say()]}

    def call(self, name: str) -> Iterator[Item]:
        asked = {"command": "create", "content": self.say()}
        yield {"type": "tool_use", "id": name, "name": "artifacts", "input": asked}
        found = {"type": "knowledge", "title": self.say(), "text": self.say()}
        texts = [{"type": "text", "text": self.say()}, found]
        result = {"type": "tool_result", "tool_use_id": name, "name": "artifacts"}
        shown = {"type": "rich_content", "content": [{"title": self.say()}]}
        yield {**result, "content": texts, "display_content": shown}


class DeepSeek(ChatGPT):
    """Trees of messages in fragments."""

    def make(self) -> Item:
        self.nodes = {}
        last = self.add(None, None)
        for _ in range(self.chance.randrange(1, 6)):
            if self.chance.random() < 0.3:
                self.into = self.others
                self.add(last, self.fragments(("REQUEST", self.say())))
                self.into = self.open
            last = self.add(last, self.fragments(("REQUEST", self.say())))
            last = self.add(last, self.answer_in_fragments())
        item = {"id": f"deep-{self.seed}", "title": "Talk", "mapping": self.nodes}
        return {**item, "inserted_at": "2026-05-01T10:00:00+08:00"}

    def fragments(self, *said: tuple[str, str]) -> Item:
        files = self.some(lambda: {"file_name": self.say("", ".pdf")}, 1)
        found = [{"type": kind, "content": text} for kind, text in said]
        return {"files": files, "model": "deepseek-reasoner", "fragments": found}

    def answer_in_fragments(self) -> Item:
        made = self.fragments(("THINK", self.say()))
        if self.chance.random() < 0.5:
            page = {"url": self.say("https://d.test/", ""), "title": self.say()}
            found = [{**page, "snippet": self.say()}]
            made["fragments"].append({"type": "SEARCH", "results": found})
        if self.chance.random() < 0.3:
            made["fragments"].append({"type": "FUTURE", "content": self.say()})
        made["fragments"].append({"type": "RESPONSE", "content": self.say()})
        return made


KINDS = (ChatGPT, Claude, DeepSeek)


def make_archive(seed: int) -> tuple[Archive, Item]:
    archive = KINDS[seed % len(KINDS)](seed)
    return archive, archive.make()
