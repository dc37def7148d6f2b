"""The summariser: messages become a validated summary; the model is only a callable.

Every message is read whole: input too long for one request is read in chunks, whose
summaries are joined. A doubtful reply raises an error and is never stored.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, Protocol, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from .. import replies
from ..compose import SummaryBlock, time_of
from ..exceptions import EmptySummary, SummaryError
from ..plan import Merge, Step
from ..policy import CHUNK_TOKENS, Policy
from ..tokens import TokenCounter, count_tokens
from ..wording import gettext_noop as _
from . import facts, material, prompts, schemas
from .dropped import MAX_CHECKED_CHARS, find_dropped, find_dropped_by_merge, to_flags
from .validation import validate_summary

T = TypeVar("T")
Invoke = Callable[[list[BaseMessage]], Awaitable[AIMessage]]
Task = Literal["initial", "extend", "merge"]

BUILT_IN = {
    "initial": prompts.INITIAL,
    "extend": prompts.EXTEND,
    "merge": prompts.MERGE,
}
IN_PLACE = {"initial": prompts.INITIAL_IN_PLACE, "extend": prompts.EXTEND_IN_PLACE}
# Up to this many parts (the earlier summary and the chunks) are read one after another,
# each request extending the summary; more would rewrite the first ones too often.
MOST_EXTENDED = 2
# Tokens of messages that are worth reading again for a merged summary.
MAX_REREAD = 8000
# The range of the summary that precedes the messages.
EARLIER = "earlier"
# Opens the line of identifiers that a summary left out and must keep.
CARRIED = "Identifiers: "


class StructuredInvoke(Protocol):
    """An Invoke that accepts the schema that the reply should follow.

    A callable whose model has structured output sets `takes_schema` and binds it. The
    schema is None where a user's own prompt asks for another form.
    """

    takes_schema: bool

    def __call__(
        self, messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
    ) -> Awaitable[AIMessage]: ...


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A valid summary, the hash of its prompts and the number of its requests.

    `rewritten`: made of an earlier summary, not of messages alone. `structured` is the
    data that the text was rendered from, if the model returned any. `flags` lists what
    to check: "unsupported" (facts found in none of the messages), "carried"
    (identifiers that the model left out and that were added to the text), "dropped"
    (each `DroppedDetail` as text: in the messages, not in the summary) and
    "dropped_from" (each `DroppedCount` as text).
    """

    text: str
    prompt_hash: str
    requests: int
    rewritten: bool = False
    structured: dict[str, Any] | None = None
    flags: dict[str, list[str]] = field(default_factory=dict)


async def write_summary(
    invoke: Invoke | StructuredInvoke,
    step: Step,
    covered: Sequence[BaseMessage] = (),
    *,
    prefix: Sequence[BaseMessage] = (),
    **options: Any,
) -> SummaryText:
    """Write the summary of a step.

    `options` and `prefix` are those of the two functions below. `covered`: the messages
    that the summaries of a merge cover. If the messages are only trimmed, the text is
    empty and no request is sent.
    """
    if isinstance(step, Merge):
        return await merge_summaries(invoke, step.replaces, covered, **options)
    if step.is_trim:
        return SummaryText("", prompt_hash="", requests=0)
    previous = step.previous.text if step.previous else ""
    options |= {"previous": previous, "prefix": prefix}
    return await summarize_window(invoke, step.messages, **options)


async def summarize_window(
    invoke: Invoke | StructuredInvoke,
    messages: Sequence[BaseMessage],
    *,
    previous: str = "",
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
    prefix: Sequence[BaseMessage] = (),
) -> SummaryText:
    """Summarise the messages, extending `previous`. Raise SummaryError on failure.

    No request holds more than `chunk_tokens` or than the policy allows of messages. But
    if `prefix` ends with all of them, it is sent as it is with an instruction behind
    it: the last request to the same model began with it, so the provider has it in a
    cache. `previous` is quoted in it.
    """
    if not messages:
        raise EmptySummary(_("There is nothing to summarise."))
    writer = _Writer(invoke, policy, count_tokens)
    if writer.can_ask_in_place(prefix, messages, previous):
        # If the model continues the conversation instead, the other form is used.
        with suppress(SummaryError):
            text = await writer.write_in_place(prefix, messages, previous)
            return await writer.finish(text, [previous], messages)
    limit = min(chunk_tokens, policy.chunk_tokens)
    chunks = list(material.chunk_messages(messages, count_tokens, limit))
    if len(chunks) + bool(previous) > MOST_EXTENDED:
        text = await writer.join(previous, chunks, limit)
        return await writer.finish(text, [previous], messages)
    text = previous
    for number, chunk in enumerate(chunks, start=1):
        text = await writer.write(
            "extend" if text else "initial",
            {"previous_summary": text, "messages": chunk},
            is_last=number == len(chunks),
        )
    return await writer.finish(text, [previous], messages)


async def merge_summaries(
    invoke: Invoke | StructuredInvoke,
    blocks: Sequence[SummaryBlock],
    messages: Sequence[BaseMessage] = (),
    *,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SummaryText:
    """Return one summary for adjacent ones, or raise SummaryError.

    It is made from their messages if those fit in one request: read from the transcript
    again, nothing is rewritten twice. But a text that a user wrote is not in the
    transcript, so then the summaries are read.
    """
    limit = min(chunk_tokens, policy.chunk_tokens, MAX_REREAD)
    may_read = messages and not any(block.by_hand for block in blocks)
    if (
        may_read
        and len(list(material.chunk_messages(messages, count_tokens, limit))) == 1
    ):
        return await summarize_window(
            invoke,
            messages,
            policy=policy,
            count_tokens=count_tokens,
            chunk_tokens=limit,
        )
    writer = _Writer(invoke, policy, count_tokens)
    summaries = [
        {"messages": f"{block.first_seq}-{block.last_seq}", "text": block.text}
        for block in blocks
    ]
    text = await writer.write("merge", {"summaries": summaries}, is_last=True)
    texts = [block.text for block in blocks]
    made = await writer.finish(text, texts, ())
    lost = await _check(find_dropped_by_merge, texts, messages, made.text)
    return replace(made, flags=made.flags | to_flags(lost))


class Checks:
    """The thread in which summaries are checked.

    A check reads all of a long conversation while replies go on. A server has one
    thread for it: several threads that compute would leave little of the processor to
    the one that sends replies. None: any thread.
    """

    thread: Executor | None = None


async def _check(work: Callable[..., T], *args: Any) -> T:
    loop, context = asyncio.get_running_loop(), copy_context()
    return await loop.run_in_executor(Checks.thread, context.run, work, *args)


@dataclass(eq=False)
class _Writer:
    """The writer of one summary: sends the requests and counts them."""

    invoke: Invoke | StructuredInvoke
    policy: Policy
    count_tokens: TokenCounter
    prompts: list[str] = field(default_factory=list)
    # The beginning of the last request, and the messages to read of it, if the summary
    # is requested at its end.
    prefix: Sequence[BaseMessage] = ()
    covered: Sequence[BaseMessage] = ()
    # The data of each text that was rendered from data.
    structured: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def write(
        self, task: Task, document: material.Document, *, is_last: bool
    ) -> str:
        text = await self._ask(task, document)
        if not is_last:
            return text
        if isinstance(self.policy.profile, type) and text not in self.structured:
            # The caller wants data, but a text is better than no summary.
            with suppress(SummaryError):
                text = await self._ask(task, document, more=prompts.FORM)
        if len(text) >= self.policy.min_summary_chars:
            return text
        # The first summary is valid, only short: it is kept if the second one is not.
        with suppress(SummaryError):
            longer = await self._ask(task, document, more=prompts.MORE_DETAIL)
            text = max(text, longer, key=len)
        return text

    def can_ask_in_place(
        self, prefix: Sequence[BaseMessage], messages: Sequence[BaseMessage], text: str
    ) -> bool:
        policy = self.policy
        # A user's own prompt does not know where its material is, and no words of a
        # user may come after the prefix.
        own = policy.extend_prompt if text else policy.initial_prompt
        is_custom = bool(own or policy.focus)
        can_ask = policy.cached_prefix and not is_custom
        return can_ask and material.holds_whole(prefix, messages)

    async def write_in_place(
        self, prefix: Sequence[BaseMessage], messages: Sequence[BaseMessage], text: str
    ) -> str:
        data = material.describe_in_place(prefix, messages, extends=bool(text))
        # A summary may be as long as everything that it replaces.
        earlier = [HumanMessage(text)] if text else []
        self.prefix, self.covered = prefix, [*earlier, *messages]
        try:
            return await self.write("extend" if text else "initial", data, is_last=True)
        finally:
            self.prefix = self.covered = ()

    async def join(
        self, previous: str, chunks: Sequence[list[material.Document]], limit: int
    ) -> str:
        """Return one summary of the earlier one and of chunks that are read one by one.

        Each chunk is summarised once, and again where it is joined with the others: in
        groups of at most `limit` tokens, so mostly all at once.
        """
        parts = [{"messages": EARLIER, "text": previous}] if previous else []
        for chunk in chunks:
            document = {"previous_summary": "", "messages": chunk}
            text = await self.write("initial", document, is_last=False)
            numbers = f"{chunk[0]['n']}-{chunk[-1]['n']}"
            parts.append({"messages": numbers, "text": text})
        while len(parts) > 1:
            groups = material.group_documents(parts, self.count_tokens, limit)
            parts = [await self._join_group(each, len(groups) == 1) for each in groups]
        return parts[0]["text"]

    async def _join_group(
        self, parts: list[material.Document], is_last: bool
    ) -> material.Document:
        if len(parts) == 1:
            return parts[0]
        text = await self.write("merge", {"summaries": parts}, is_last=is_last)
        first, last = parts[0]["messages"], parts[-1]["messages"]
        numbers = f"{first.split('-')[0]}-{last.split('-')[-1]}"
        return {"messages": numbers, "text": text}

    async def _ask(
        self, task: Task, document: material.Document, more: str = ""
    ) -> str:
        schema = self._schema_for(task)
        prompt = self._describe(task, schema)
        self.prompts.append(prompt + more)
        cap = {"max_tokens": self.policy.max_summary_tokens}
        # A bound schema would stand before the prefix, where no cache has it.
        bound = None if self.prefix else schema
        focus = {"keep_above_all": self.policy.focus} if self.policy.focus else {}
        subject = material.dump_json(document | focus | cap)
        read = self.covered or [HumanMessage(material.dump_json(document))]
        request = [SystemMessage(prompt + more), HumanMessage(subject)]
        if self.prefix:
            request = [*self.prefix, HumanMessage(f"{prompt}{more}\n{subject}")]
        takes_schema = getattr(self.invoke, "takes_schema", False)
        reply = await self.invoke(request, **{"schema": bound} if takes_schema else {})
        answer = replies.strip_reasoning(str(reply.text))
        structured = schemas.parse_summary(schema, answer) if schema else None
        text = validate_summary(
            reply,
            input_tokens=self.count_tokens(read),
            policy=self.policy,
            count_tokens=self.count_tokens,
            text=answer if structured is None else schemas.render_summary(structured),
        )
        if structured is not None:
            self.structured[text] = structured
        return text

    def _schema_for(self, task: Task) -> type[BaseModel] | None:
        """Return the schema, or None if a user's own prompt asks for another form."""
        is_custom = bool(getattr(self.policy, f"{task}_prompt"))
        is_class = isinstance(self.policy.profile, type)
        return None if is_custom and not is_class else schemas.schema_for(self.policy)

    def _describe(self, task: Task, schema: type[BaseModel] | None) -> str:
        """Return the instruction of a task."""
        prompt = (IN_PLACE if self.prefix else BUILT_IN)[task]
        if custom := getattr(self.policy, f"{task}_prompt"):
            prompt = f"{prompts.MARKER}\n{custom}\n\n{prompts.CUSTOM_RULES}"
        if self.policy.focus:
            prompt += prompts.FOCUS
        if schema is None:
            return prompt
        shape = schemas.describe_schema(schema)
        times = prompts.TIMES if schemas.DATE_SHAPE in shape else ""
        return f"{prompt}\n\n{prompts.STRUCTURE}{shape}{times}"

    async def finish(
        self, text: str, texts: Sequence[str], messages: Sequence[BaseMessage]
    ) -> SummaryText:
        return await _check(self._finish, text, texts, messages)

    def _finish(
        self, text: str, texts: Sequence[str], messages: Sequence[BaseMessage]
    ) -> SummaryText:
        """Return the summary, checked against the texts and messages it replaces."""
        used = "\n\n".join(dict.fromkeys(self.prompts))
        sources = dict.fromkeys([*texts, *map(material.describe_text, messages)])
        flags: dict[str, list[str]] = {}
        if len(text) <= MAX_CHECKED_CHARS:
            dates: list[date] = list(filter(None, map(time_of, messages)))
            flags["unsupported"] = facts.find_unsupported(
                schemas.without_times(text), sources, dates
            )
        complete = text
        if self.policy.protect and self._count(text) < self.policy.max_summary_tokens:
            by_user = [*texts, *(m.text for m in messages if m.type == "human")]
            written = dict.fromkeys([*by_user, *sources])
            missing = facts.missing_identifiers(text, written)
            complete, flags["carried"] = self._carry(text, missing)
        if len(text) <= MAX_CHECKED_CHARS:
            flags |= to_flags(find_dropped(messages, complete))
        return SummaryText(
            text=complete,
            prompt_hash=hashlib.sha256(used.encode()).hexdigest(),
            requests=len(self.prompts),
            rewritten=any(texts),
            structured=self.structured.get(text),
            flags={name: found for name, found in flags.items() if found},
        )

    def _carry(self, text: str, missing: Sequence[str]) -> tuple[str, list[str]]:
        """Return the text with one line of the first identifiers that fit."""
        head, mark, line = text.rpartition("\n" + CARRIED)
        has_line = bool(mark) and "\n" not in line
        head, known = (head.rstrip(), [line]) if has_line else (text, [])
        carried: list[str] = []
        complete = text
        for identifier in missing:
            # The blank line keeps it out of a list that comes before it.
            longer = f"{head}\n\n{CARRIED}{', '.join([*known, *carried, identifier])}"
            if self._count(longer) <= self.policy.max_summary_tokens:
                carried.append(identifier)
                complete = longer
        return complete, carried

    def _count(self, text: str) -> int:
        return self.count_tokens([HumanMessage(text)])
