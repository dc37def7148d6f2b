"""The contestants: every system with its usual settings, and with this project's
budget.

Usual settings are those of its documentation or of its factory. The fixed budget is:
compaction at 4,000 tokens of this project's estimate down to 1,000, and read everything
compacted. This project's own window adapts to the turns of the conversation, so there
is another one: the same rule for the others, turn by turn.
"""

from collections.abc import Sequence
from functools import partial

from langchain_core.messages import BaseMessage, HumanMessage

from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from memory.engine.triggers import adaptive_trigger

from .figures import OURS
from .models import SUMMARY_TOKENS
from .systems.base import Make
from .systems.deepagents import DeepAgents
from .systems.langchain import AdaptiveLangChain, LangChain
from .systems.langgraph import LangGraphTutorial, keep_tokens
from .systems.langmem import LangMem
from .systems.windowpane import Windowpane

POLICY = Policy()
TRIGGER = next(n for clause in POLICY.trigger for kind, n in clause if kind == "tokens")
KEPT_TOKENS = int(POLICY.keep[1])


def find_our_size(window: Sequence[BaseMessage], summary_tokens: int) -> int:
    """The size at which this project compacts a window, by the mean of its turns."""
    turns = sum(isinstance(message, HumanMessage) for message in window)
    turn_tokens = count_tokens(window) / max(turns, 1)
    return adaptive_trigger(turn_tokens, summary_tokens or SUMMARY_TOKENS, KEPT_TOKENS)


BUDGET = {
    "trigger": ("tokens", TRIGGER),
    "keep": POLICY.keep,
    "trim_tokens_to_summarize": None,
    "token_counter": count_tokens,
}

CONTESTANTS: dict[str, Make] = {
    f"{OURS}, layered, adaptive": Windowpane,
    f"{OURS}, layered, adaptive + recall": partial(Windowpane, recall_tokens=500),
    f"{OURS}, layered, adaptive + recall + rules kept": partial(
        Windowpane, recall_tokens=500, keeps_rules=True
    ),
    "LangGraph tutorial, > 6 messages, keep 2": LangGraphTutorial,
    "LangGraph tutorial, fixed 4000": partial(
        LangGraphTutorial, keep=keep_tokens(lambda *_: TRIGGER, KEPT_TOKENS)
    ),
    "LangGraph tutorial, our adaptive window": partial(
        LangGraphTutorial, keep=keep_tokens(find_our_size, KEPT_TOKENS)
    ),
    "LangMem, documented 256/256/128": partial(
        LangMem, max_tokens=256, max_tokens_before_summary=256, max_summary_tokens=128
    ),
    "LangMem, 2000/4000/256": partial(
        LangMem, max_tokens=2000, max_tokens_before_summary=4000, max_summary_tokens=256
    ),
    "LangMem, fixed 4000/4000/256": partial(
        LangMem, max_tokens=TRIGGER, max_summary_tokens=256, token_counter=count_tokens
    ),
    "LangChain, documented 4000 tokens, keep 20": partial(
        LangChain, trigger=("tokens", 4000), keep=("messages", 20)
    ),
    "LangChain, 50 messages, keep 20": partial(
        LangChain, trigger=("messages", 50), keep=("messages", 20)
    ),
    "LangChain, fixed 4000, no trim": partial(LangChain, **BUDGET),
    "LangChain, our adaptive window, no trim": partial(
        AdaptiveLangChain, find_size=find_our_size, **BUDGET
    ),
    "Deep Agents, factory, 32k window": DeepAgents,
    "Deep Agents, factory, 128k window": partial(DeepAgents, context_window=128_000),
    "Deep Agents, fixed 4000, no trim": partial(DeepAgents, **BUDGET),
}
