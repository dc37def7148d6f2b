"""The summarisers: the project's extractive one, a perfect one and a lossy one."""

import random
import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from chatsite.llm.demo.chat_model import reply_to
from chatsite.llm.demo.extractive import summarize_extractively
from memory.engine.summaries.material import dump_json
from memory.engine.summaries.material import read_request as read_summary_request

from .models import Write
from .requests import read_request

# As bench.memory.conversations writes them.
FACT = re.compile(r"\[fact-\d{3}[^\]]*\]")


def write_extract(request: Sequence[BaseMessage], max_tokens: int) -> str:
    """The sentences that carry facts, word for word; deterministic."""
    if read_summary_request(request) is not None:
        return reply_to(request)
    material = read_request(request)
    texts = [f"{said.role}: {said.text}" for said in material.messages]
    earlier = material.earlier
    return summarize_extractively(texts, max_tokens=max_tokens, previous=earlier)


def write_every_fact(request: Sequence[BaseMessage], max_tokens: int) -> str:
    """The perfect summariser: all facts it was shown, however many they are."""
    return _list(_facts(request))


def make_lossy(kept: float, seed: int) -> Write:
    """A summariser that keeps each fact with this probability whenever it writes."""
    chance = random.Random(seed)

    def write(request: Sequence[BaseMessage], max_tokens: int) -> str:
        return _list([fact for fact in _facts(request) if chance.random() < kept])

    return write


def _facts(request: Sequence[BaseMessage]) -> list[str]:
    document = read_summary_request(request)
    texts = [dump_json(document)] if document else [each.text for each in request]
    text = " ".join(texts)
    return list(dict.fromkeys(FACT.findall(text)))


def _list(facts: list[str]) -> str:
    return "Known: " + " ".join(facts)
