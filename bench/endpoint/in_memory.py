"""The identity rule without a site: a store that keeps its data in dictionaries.

It is the shortest implementation of `chatsite/contrib/endpoint/identity/known.py`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chatsite.contrib.endpoint.identity.canonical import encode_text
from chatsite.contrib.endpoint.identity.deciding import decide_lineage
from chatsite.contrib.endpoint.identity.decision import (
    Decision,
    list_chains,
    stays_single,
)
from chatsite.contrib.endpoint.identity.hints import Hints, read_hints
from chatsite.contrib.endpoint.identity.history import (
    History,
    Message,
    read_history,
    read_reply,
)
from chatsite.contrib.endpoint.identity.known import MOST_PLACES, PathMessage, Place

from .wires import Request, Said, write_answer


@dataclass(slots=True)
class Conversation:
    """The newest versions of a conversation's messages, in order."""

    name: str
    family: str
    client: str
    is_single: bool = False
    path: list[PathMessage] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    # Instructions and tools of its requests.
    instructions: list[str] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)
    # Position of a request that has no reply yet.
    open_at: int | None = None
    # Number of its last request, counted over all requests.
    updated: int = 0


class MemoryStore:
    """The conversations of one user."""

    def __init__(self) -> None:
        self.conversations: dict[str, Conversation] = {}
        self.chains: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
        self.digests: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
        self.requests: dict[str, tuple[str, int]] = {}
        self.lookups = self.made = self.taken = 0

    # The look-ups of the rule.

    def find_chains(self, chains: Sequence[bytes]) -> Mapping[bytes, Sequence[Place]]:
        return self._find(self.chains, chains)

    def find_messages(
        self, digests: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Place]]:
        return self._find(self.digests, digests)

    def find_client(self, client: str) -> Sequence[Place]:
        self.lookups += 1
        found = [each for each in self.conversations.values() if each.client == client]
        found.sort(key=lambda each: -each.updated)
        newest = found[:MOST_PLACES]
        return [self._place(each.name, len(each.path) - 1) for each in newest]

    def find_request(self, key: str) -> Place | None:
        self.lookups += 1
        found = self.requests.get(key)
        return self._place(*found) if found else None

    def read_path(self, conversation: str, first: int) -> Sequence[PathMessage]:
        self.lookups += 1
        return self.conversations[conversation].path[first:]

    def read_text(self, conversation: str, position: int) -> str:
        self.lookups += 1
        return self.conversations[conversation].texts[position]

    def read_instructions(self, conversation: str) -> str:
        self.lookups += 1
        return (self.conversations[conversation].instructions or [""])[-1]

    def has_spoken(self, conversation: str, instructions: str, tools: str) -> bool:
        self.lookups += 1
        kept = self.conversations[conversation]
        is_known = bool(kept.tools)
        return not is_known or tools in kept.tools or instructions in kept.instructions

    def _find(
        self, table: dict[bytes, list[tuple[str, int]]], hashes: Sequence[bytes]
    ) -> dict[bytes, list[Place]]:
        self.lookups += 1
        found = {}
        for each in hashes:
            rows = [row for row in table.get(each, ()) if row[0] in self.conversations]
            if rows:
                rows.reverse()
                # Ends come first.
                rows.sort(key=self._is_inner)
                found[each] = [self._place(*row) for row in rows[:MOST_PLACES]]
        return found

    def _is_inner(self, row: tuple[str, int]) -> bool:
        name, position = row
        return position != len(self.conversations[name].path) - 1

    def _place(self, name: str, position: int) -> Place:
        kept = self.conversations[name]
        return Place(
            name,
            position,
            kept.family,
            kept.client,
            is_tip=position == len(kept.path) - 1,
            is_open=position == kept.open_at,
            is_single=kept.is_single,
        )

    # The storage of a request and its reply.

    def take(self, history: History, hints: Hints, decision: Decision) -> Conversation:
        kept = self._open(history, hints, decision)
        kept.instructions.append("\n\n".join(history.instructions))
        kept.tools.add(history.tools)
        is_side = "side" in decision.why
        for index, position in list_chains(history, decision):
            # A side call's shared messages belong to its parent, in their new form.
            is_shared = is_side and index < decision.first_new
            whose = self.conversations[decision.conversation] if is_shared else kept
            self._keep(whose, history.messages[index], position)
        if decision.kind == "retry":
            self._forget_reply(kept, decision.parent_position)
        kept.open_at = len(kept.path) - 1
        self.taken += 1
        kept.updated = self.taken
        if hints.idempotency_key:
            self.requests[hints.idempotency_key] = (kept.name, kept.open_at)
        return kept

    def _open(self, history: History, hints: Hints, decision: Decision) -> Conversation:
        if decision.kind in ("new", "single", "branch"):
            kept = self._make(hints, decision)
        else:
            kept = self.conversations[decision.conversation or ""]
        kept.client = kept.client or hints.conversation
        if decision.kind != "single" and "side" not in decision.why:
            is_branch = kept.name != kept.family
            kept.is_single &= stays_single(history, decision, is_branch=is_branch)
        return kept

    def _make(self, hints: Hints, decision: Decision) -> Conversation:
        name = f"c{self.made}"
        self.made += 1
        made = Conversation(name, name, hints.conversation)
        made.is_single = decision.kind == "single" or "side" in decision.why
        if decision.conversation:
            parent = self.conversations[decision.conversation]
            made.is_single |= parent.is_single
            made.family = parent.family
            made.path = parent.path[: decision.parent_position]
            made.texts = parent.texts[: decision.parent_position]
        self.conversations[name] = made
        return made

    def _keep(
        self,
        kept: Conversation,
        message: Message,
        position: int,
        served: bool = False,
    ) -> None:
        size = len(encode_text(message.text))
        if position == len(kept.path):
            kept.path.append(PathMessage(message.digest, message.role, size, served))
            kept.texts.append(message.text)
        elif kept.path[position].digest != message.digest:
            was_served = kept.path[position].is_served
            newest = PathMessage(message.digest, message.role, size, was_served)
            kept.path[position] = newest
            kept.texts[position] = message.text
        self.chains[message.chain].append((kept.name, position))
        self.digests[message.digest].append((kept.name, position))

    def _forget_reply(self, kept: Conversation, count: int) -> None:
        """Remove the last reply, as another one to the same request replaces it."""
        if len(kept.path) == count + 1:
            kept.path.pop()
            kept.texts.pop()

    def serve(self, kept: Conversation, messages: Sequence[Message]) -> None:
        for message in messages:
            self._keep(kept, message, len(kept.path), True)
        kept.open_at = None

    def delete(self, name: str) -> None:
        del self.conversations[name]


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision that a client sees; for a branch also its parent, if known."""

    conversation: str
    lineage: str
    reply: Said | None = None
    parent: str = ""
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        parent = f" of {self.parent}" if self.parent else ""
        return f"{self.lineage} {self.conversation}{parent} {' '.join(self.why)}"


class MemoryTarget:
    """Decides requests as the site does, with one store per user."""

    def __init__(self) -> None:
        self.stores: dict[int, MemoryStore] = defaultdict(MemoryStore)
        self.decisions: list[Decision] = []

    def send(self, user: int, request: Request, reply: Said | None) -> Answer:
        """Decide a request, and store it; without a reply, the upstream fails."""
        store = self.stores[user]
        history = read_history(request.wire, request.body)
        hints = read_hints(request.headers, request.body)
        decision = decide_lineage(history, hints, store)
        self.decisions.append(decision)
        kept = store.take(history, hints, decision)
        if reply:
            base = history.messages[-1].chain
            body = write_answer(request.wire, reply)
            store.serve(kept, read_served(request.wire, body, base))
        parent = decision.conversation if decision.kind == "branch" else ""
        return Answer(kept.name, decision.kind, reply, parent or "", decision.why)


def read_served(wire: str, body: dict, base: bytes) -> list[Message]:
    """Return the message of a reply from the body of an answer."""
    reply = body["choices"][0]["message"] if wire == "chat" else body
    return read_reply(wire, reply, base)
