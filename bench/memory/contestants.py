"""Who takes part: every system with its usual settings, and with this project's budget.

Usual settings are those of its documentation or of its factory. The budget is:
compaction at 4,000 tokens of this project's estimate down to 1,000, and read everything
compacted.
"""

from functools import partial

from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens

from .figures import OURS
from .systems.base import Make
from .systems.deepagents import DeepAgents
from .systems.langchain import LangChain
from .systems.langgraph import LangGraphTutorial, keep_tokens
from .systems.langmem import LangMem
from .systems.windowpane import Windowpane

POLICY = Policy()
TRIGGER = next(n for clause in POLICY.trigger for kind, n in clause if kind == "tokens")
BUDGET = {
    "trigger": ("tokens", TRIGGER),
    "keep": POLICY.keep,
    "trim_tokens_to_summarize": None,
    "token_counter": count_tokens,
}

CONTESTANTS: dict[str, Make] = {
    f"{OURS}, layered": Windowpane,
    f"{OURS}, layered + recall": partial(Windowpane, recall_tokens=500),
    f"{OURS}, layered + recall + rules kept": partial(
        Windowpane, recall_tokens=500, keeps_rules=True
    ),
    "LangGraph tutorial, > 6 messages, keep 2": LangGraphTutorial,
    "LangGraph tutorial, equal budget": partial(
        LangGraphTutorial, keep=keep_tokens(TRIGGER, int(POLICY.keep[1]))
    ),
    "LangMem, documented 256/256/128": partial(
        LangMem, max_tokens=256, max_tokens_before_summary=256, max_summary_tokens=128
    ),
    "LangMem, 2000/4000/256": partial(
        LangMem, max_tokens=2000, max_tokens_before_summary=4000, max_summary_tokens=256
    ),
    "LangMem, equal budget 4000/4000/256": partial(
        LangMem, max_tokens=TRIGGER, max_summary_tokens=256, token_counter=count_tokens
    ),
    "LangChain, documented 4000 tokens, keep 20": partial(
        LangChain, trigger=("tokens", 4000), keep=("messages", 20)
    ),
    "LangChain, 50 messages, keep 20": partial(
        LangChain, trigger=("messages", 50), keep=("messages", 20)
    ),
    "LangChain, equal budget, no trim": partial(LangChain, **BUDGET),
    "Deep Agents, factory, 32k window": DeepAgents,
    "Deep Agents, factory, 128k window": partial(DeepAgents, context_window=128_000),
    "Deep Agents, equal budget, no trim": partial(DeepAgents, **BUDGET),
}
