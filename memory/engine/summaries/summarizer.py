"""Turns messages into a validated summary; knows the model only as a callable.

Every message is read whole: input too long for one request is read in chunks, each
extending the summary of the ones before. A doubtful reply raises, it is never stored.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, Protocol

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from pydantic import BaseModel

from .. import replies
from ..blank import is_blank
from ..compose import SummaryBlock, time_of
from ..exceptions import (
    EmptySummary,
    ErrorSummary,
    OverlongSummary,
    RefusedSummary,
    SummaryError,
    TruncatedSummary,
)
from ..plan import Merge, Step
from ..policy import CHUNK_TOKENS, Policy
from ..tokens import TokenCounter, count_tokens
from ..wording import gettext_noop as _
from . import facts, material, prompts, schemas

Invoke = Callable[[list[BaseMessage]], Awaitable[AIMessage]]
Task = Literal["initial", "extend", "merge"]

BUILT_IN = {
    "initial": prompts.INITIAL,
    "extend": prompts.EXTEND,
    "merge": prompts.MERGE,
}
# Longer ones, far beyond any cap, are hardly summaries; checking them takes seconds.
MAX_CHECKED_CHARS = 20_000
# Opens the line that holds what a summary left out and may not lose.
CARRIED = "Identifiers: "
# A refusal is a short reply that begins like one; a summary may well quote one later.
REFUSAL_MAX_CHARS = 400
REFUSAL = re.compile(
    r"(i['’]m sorry|sorry|i apologi[sz]e|unfortunately)?[,.]?\s*(but\s+)?"
    r"(as an ai\b|i\s*(['’]m|am)?\s*(can['’]?t|can ?not|unable to|not able to|won['’]t)"
    r"\s+(help|assist|summari[sz]e|comply|do|provide|process|fulfill?|continue))"
    r"|(很?抱歉|对不起)?[,，。]?\s*我(不能|无法|没法)(帮|协助|总结|提供|处理|满足|完成)",
    re.IGNORECASE,
)


class StructuredInvoke(Protocol):
    """An Invoke that wants to know the schema that the reply should follow.

    One whose model has structured output sets `takes_schema` and binds it. The schema
    is None where a user's own prompt asks for another form.
    """

    takes_schema: bool

    def __call__(
        self, messages: list[BaseMessage], *, schema: type[BaseModel] | None = None
    ) -> Awaitable[AIMessage]: ...


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A valid summary, the hash of the prompts it came from, and what it took.

    `rewritten`: made of an earlier summary, not of messages alone. `structured` is the
    data that the text was made of, if the model gave any. `flags` tells what to look
    at: "unsupported", facts found in no message that was read, and "carried",
    identifiers the model left out, which were added to the text.
    """

    text: str
    prompt_hash: str
    requests: int
    rewritten: bool = False
    structured: dict[str, Any] | None = None
    flags: dict[str, list[str]] = field(default_factory=dict)


async def write(
    invoke: Invoke | StructuredInvoke,
    step: Step,
    covered: Sequence[BaseMessage] = (),
    **options: Any,
) -> SummaryText:
    """The summary of a step; `options` are those of `summarize` and `merge`.

    `covered`: the messages that the summaries of a merge cover. The text is empty, and
    nothing is asked, where what leaves the window is not to be summarised.
    """
    if isinstance(step, Merge):
        return await merge(invoke, step.replaces, covered, **options)
    if step.is_trim:
        return SummaryText("", prompt_hash="", requests=0)
    previous = step.previous.text if step.previous else ""
    return await summarize(invoke, step.messages, previous=previous, **options)


async def summarize(
    invoke: Invoke | StructuredInvoke,
    messages: Sequence[BaseMessage],
    *,
    previous: str = "",
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SummaryText:
    """Summarise the messages, extending `previous`. Raises SummaryError.

    No request holds more than `chunk_tokens` or than the policy allows of messages.
    """
    if not messages:
        raise EmptySummary(_("There is nothing to summarise."))
    writer = _Writer(invoke, policy, count_tokens)
    limit = min(chunk_tokens, policy.chunk_tokens)
    chunks = list(material.chunk(messages, count_tokens, limit))
    text = previous
    for number, chunk in enumerate(chunks, start=1):
        text = await writer.write(
            "extend" if text else "initial",
            {"previous_summary": text, "messages": chunk},
            is_last=number == len(chunks),
        )
    return await writer.finish(text, [previous], messages)


async def merge(
    invoke: Invoke | StructuredInvoke,
    blocks: Sequence[SummaryBlock],
    messages: Sequence[BaseMessage] = (),
    *,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SummaryText:
    """One summary for adjacent ones: from their messages if those fit in one request.

    Read from the transcript again, nothing is rewritten twice. Raises SummaryError.
    """
    limit = min(chunk_tokens, policy.chunk_tokens)
    if messages and len(list(material.chunk(messages, count_tokens, limit))) == 1:
        return await summarize(
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
    return await writer.finish(text, [block.text for block in blocks], ())


def validate(
    reply: AIMessage,
    *,
    input_tokens: int,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    text: str | None = None,
) -> str:
    """The text of a reply that may become memory; raises SummaryError otherwise.

    `text` is what will be stored where that is not the reply itself.
    """
    text = replies.strip_reasoning(str(reply.text)) if text is None else text
    if replies.why_metadata_cut_off(reply.response_metadata):
        raise TruncatedSummary(_("The summary was cut off by the provider."))
    is_refusal = len(text) <= REFUSAL_MAX_CHARS and REFUSAL.match(text)
    if reply.additional_kwargs.get("refusal") or is_refusal:
        raise RefusedSummary(_("The model declined to summarise."))
    if is_blank(text):
        raise EmptySummary(_("The summary is empty."))
    if replies.is_error_report(text):
        raise ErrorSummary(_("The model answered with an error, not with a summary."))
    tokens = count_tokens([HumanMessage(text)])
    if tokens > max(policy.max_summary_tokens, input_tokens):
        raise OverlongSummary(
            _(
                "The summary has %(tokens)s tokens: more than its cap of %(cap)s and "
                "than its input of %(input)s."
            ),
            tokens=tokens,
            cap=policy.max_summary_tokens,
            input=input_tokens,
        )
    return text


class _Writer:
    """Sends the requests of one summary and keeps count of them."""

    def __init__(
        self,
        invoke: Invoke | StructuredInvoke,
        policy: Policy,
        count_tokens: TokenCounter,
    ) -> None:
        self.invoke = invoke
        self.policy = policy
        self.count_tokens = count_tokens
        self.prompts: list[str] = []
        # The data of each text that was given as such.
        self.structured: dict[str, dict[str, Any]] = {}

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
        # The first summary is valid, only short: it stands if the second one is not.
        with suppress(SummaryError):
            longer = await self._ask(task, document, more=prompts.MORE_DETAIL)
            text = max(text, longer, key=len)
        return text

    async def _ask(
        self, task: Task, document: material.Document, more: str = ""
    ) -> str:
        schema = self._schema_for(task)
        prompt = self._describe(task, schema)
        self.prompts.append(prompt + more)
        cap = {"max_tokens": self.policy.max_summary_tokens}
        request = [
            SystemMessage(prompt + more),
            HumanMessage(material.to_json(document | cap)),
        ]
        takes_schema = getattr(self.invoke, "takes_schema", False)
        options = {"schema": schema} if takes_schema else {}
        reply = await self.invoke(request, **options)
        answer = replies.strip_reasoning(str(reply.text))
        structured = schemas.parse(schema, answer) if schema else None
        text = validate(
            reply,
            input_tokens=self.count_tokens([HumanMessage(material.to_json(document))]),
            policy=self.policy,
            count_tokens=self.count_tokens,
            text=answer if structured is None else schemas.render(structured),
        )
        if structured is not None:
            self.structured[text] = structured
        return text

    def _schema_for(self, task: Task) -> type[BaseModel] | None:
        """None where a user's own prompt asks for another form than a profile."""
        is_custom = bool(getattr(self.policy, f"{task}_prompt"))
        is_class = isinstance(self.policy.profile, type)
        return None if is_custom and not is_class else schemas.schema_for(self.policy)

    def _describe(self, task: Task, schema: type[BaseModel] | None) -> str:
        """The instruction of a task."""
        prompt = BUILT_IN[task]
        if custom := getattr(self.policy, f"{task}_prompt"):
            prompt = f"{prompts.MARKER}\n{custom}\n\n{prompts.CUSTOM_RULES}"
        if schema is None:
            return prompt
        shape = schemas.describe_schema(schema)
        times = prompts.TIMES if schemas.DATE_SHAPE in shape else ""
        return f"{prompt}\n\n{prompts.STRUCTURE}{shape}{times}"

    async def finish(
        self, text: str, texts: Sequence[str], messages: Sequence[BaseMessage]
    ) -> SummaryText:
        # Reading all of a long conversation again takes a while; replies go on.
        return await asyncio.to_thread(self._finish, text, texts, messages)

    def _finish(
        self, text: str, texts: Sequence[str], messages: Sequence[BaseMessage]
    ) -> SummaryText:
        """The summary, checked against the texts and messages that it replaces."""
        used = "\n\n".join(dict.fromkeys(self.prompts))
        sources = [*texts, *map(material.describe_text, messages)]
        flags: dict[str, list[str]] = {}
        if len(text) <= MAX_CHECKED_CHARS:
            dates: list[date] = list(filter(None, map(time_of, messages)))
            flags["unsupported"] = facts.unsupported(
                schemas.without_times(text), sources, dates
            )
        complete = text
        if self.policy.protect and self._count(text) < self.policy.max_summary_tokens:
            by_user = [*texts, *(m.text for m in messages if m.type == "human")]
            missing = facts.missing_identifiers(text, [*by_user, *sources])
            complete, flags["carried"] = self._carry(text, missing)
        return SummaryText(
            text=complete,
            prompt_hash=hashlib.sha256(used.encode()).hexdigest(),
            requests=len(self.prompts),
            rewritten=any(texts),
            structured=self.structured.get(text),
            flags={name: found for name, found in flags.items() if found},
        )

    def _carry(self, text: str, missing: Sequence[str]) -> tuple[str, list[str]]:
        """The text and one line of the first identifiers for which there is room."""
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
