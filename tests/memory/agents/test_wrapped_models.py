"""Models that are wrapped or can only be awaited, and what is said of a failure."""

import asyncio
import warnings
from functools import partial
from unittest.mock import AsyncMock, MagicMock

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ModelRequest
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda

from memory.agents import deepagents, langchain, langgraph, langmem
from memory.agents.failures import SummaryWarning, describe_failure
from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.summarizers import ModelWriter, find_chat_model, make_writer
from memory.engine.policy import Policy

from ..engine.chats import chat
from .agents import Model, model, summariser

FIVE_KEEP_TWO = {"trigger": ("messages", 5), "keep": ("messages", 2)}


class AsyncModel(Model):
    """Has no function that is called without `await`."""

    def _generate(self, *args, **kwargs):
        raise NotImplementedError("Use ainvoke.")

    async def _agenerate(self, messages, *args, **kwargs):
        await asyncio.sleep(0)
        return super()._generate(messages)


def async_model(*replies, **fields):
    return AsyncModel(replies=list(replies), requests=[], **fields)


class Broken(Model):
    def _generate(self, *args, **kwargs):
        raise OSError("the first one is down")


WRAPPERS = {
    "bind": lambda model: model.bind(stop=["\n\n\n"]),
    "with_config": lambda model: model.with_config(tags=["mine"]),
    "both": lambda model: model.bind(stop=["x"]).with_config(tags=["mine"]),
    "with_fallbacks": lambda model: Broken().with_fallbacks([model]),
    "fallbacks of bound ones": lambda model: (
        Broken().bind(stop=["x"]).with_fallbacks([model.bind(stop=["x"])])
    ),
    "configurable": lambda model: model.configurable_fields(
        default=ConfigurableField("default")
    ),
}
# LangChain's class takes no model that has no `_llm_type`.
SUMMARIZERS = WRAPPERS | {
    "with_retry": lambda model: model.with_retry(wait_exponential_jitter=False)
}
MODELS = {"sync": model, "async": async_model}


class Files(dict):
    """A backend in its smallest form."""

    def download_files(self, paths):
        return [MagicMock(error="none", content=None)]

    def write(self, file_path, content):
        self[file_path] = content
        return MagicMock(error=None)


def middlewares(model, **options):
    """Each middleware that summarises before the call."""
    options = FIVE_KEEP_TWO | options
    return {
        "windowpane": lambda: WindowpaneMiddleware(model, when="before", **options),
        "langchain": lambda: langchain.SummarizationMiddleware(model, **options),
        "deepagents": lambda: deepagents.SummarizationMiddleware(
            model, backend=Files(), **options
        ),
    }


async def ask(middleware, is_async):
    """The texts that are sent of a thread of seven messages."""
    messages, sent = chat(7), []
    state = {"messages": messages}
    request = ModelRequest(model=middleware.model, messages=messages, state=state)

    def answer(request):
        sent[:] = [message.text for message in request.messages]
        return AIMessage("answer")

    async def answer_async(request):
        return answer(request)

    if is_async:
        await middleware.awrap_model_call(request, answer_async)
    else:
        await asyncio.to_thread(middleware.wrap_model_call, request, answer)
    return sent


@pytest.fixture(params=[False, True], ids=["invoke", "ainvoke"])
def is_async(request):
    return request.param


@pytest.mark.parametrize("door", ["windowpane", "langchain", "deepagents"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_wrapped_model_summarises(door, kind, wrapper, is_async):
    wrapped = WRAPPERS[wrapper](MODELS[kind](default="They met."))
    with middlewares(wrapped)[door]() as middleware:
        summary, *_ = await ask(middleware, is_async)
    assert "They met.</summary>" in summary


@pytest.mark.parametrize("door", ["windowpane", "langchain", "deepagents"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("wrapper", SUMMARIZERS)
async def test_a_wrapped_summarizer_summarises(door, kind, wrapper, is_async):
    wrapped = SUMMARIZERS[wrapper](MODELS[kind](default="They met."))
    with middlewares(summariser(), summarizer=wrapped)[door]() as middleware:
        summary, *_ = await ask(middleware, is_async)
    assert "They met.</summary>" in summary


@pytest.mark.parametrize("wrapper", SUMMARIZERS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_wrapped_model_summarises_in_a_node(wrapper, kind):
    wrapped = SUMMARIZERS[wrapper](MODELS[kind](default="They met."))
    policy = Policy(trigger=("messages", 5), keep=("messages", 2))
    state = {"messages": chat(7)}
    made = langgraph.summarize(wrapped, policy)(state, {})
    assert [b.text for b in langgraph.load_memory(made).blocks] == ["They met."]


@pytest.mark.parametrize("wrapper", SUMMARIZERS)
@pytest.mark.parametrize("kind", MODELS)
async def test_a_wrapped_model_summarises_for_langmem(wrapper, kind, is_async):
    options = {
        "model": SUMMARIZERS[wrapper](MODELS[kind](default="They met.")),
        "running_summary": None,
        "max_tokens": 40,
        "max_summary_tokens": 10,
    }
    if is_async:
        result = await langmem.asummarize_messages(chat(9), **options)
    else:
        result = langmem.summarize_messages(chat(9), **options)
    assert result.running_summary.summary == "They met."


@pytest.mark.parametrize("wrapper", SUMMARIZERS)
def test_the_model_inside_is_found_with_its_window(wrapper):
    inside = model(profile={"max_input_tokens": 6000})
    if "fallbacks" in wrapper:
        inside = Broken(profile={"max_input_tokens": 6000})
        wrapped = inside.with_fallbacks([summariser()])
    else:
        wrapped = SUMMARIZERS[wrapper](inside)
    assert find_chat_model(wrapped) is inside
    assert make_writer(wrapped, len).chunk_tokens == 3000


def test_fake_model_summarises():
    # As mocks of models do; LangChain's class takes them, too.
    model = MagicMock(_llm_type="mock", profile={"max_input_tokens": 9000})
    model.invoke.return_value = MagicMock(text="They met.")
    model.ainvoke = AsyncMock(side_effect=AssertionError)
    model._get_ls_params.return_value = {}
    for make in middlewares(model).values():
        with make() as middleware:
            summary, *_ = asyncio.run(ask(middleware, is_async=False))
        assert "They met.</summary>" in summary


def test_model_that_is_chosen_later_counts_as_a_model():
    assert isinstance(make_writer(init_chat_model(), len), ModelWriter)


def test_the_options_of_the_wrapper_reach_the_model(monkeypatch):
    asked = []

    class Listening(Model):
        def _generate(self, messages, stop=None, **kwargs):
            asked.append((stop, kwargs))
            return super()._generate(messages)

    model = Listening(default="They met.").bind(stop=["END"], seed=7)
    with middlewares(model)["windowpane"]() as middleware:
        asyncio.run(ask(middleware, is_async=False))
    assert asked == [(["END"], {"seed": 7})]


async def upper(text):
    return text.upper()


CHAINS = {
    "parsed": lambda model: model | StrOutputParser(),
    "async function": lambda model: model | StrOutputParser() | RunnableLambda(upper),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("chain", CHAINS)
async def test_a_chain_may_have_steps_that_are_awaited(kind, chain, is_async):
    made = CHAINS[chain](MODELS[kind](default="They met."))
    middleware = WindowpaneMiddleware(
        summariser(), when="before", summarizer=made, **FIVE_KEEP_TWO
    )
    with middleware:
        summary, *_ = await ask(middleware, is_async)
    assert "they met.</summary>" in summary.lower()


async def test_an_agent_of_an_async_model_summarises_after_the_answer():
    model = async_model(default="They met.")
    with WindowpaneMiddleware(model, background=False, **FIVE_KEEP_TWO) as middleware:
        agent = create_agent(model, middleware=[middleware])
        await agent.ainvoke({"messages": chat(7)})
        (thread,) = middleware.store._memories
        assert middleware.store.load(thread).blocks[0].text == "They met."


class TestFailures:
    @pytest.mark.parametrize("door", ["windowpane", "langchain", "deepagents"])
    async def test_a_failure_warns_once_with_its_reason(self, door, is_async):
        down = summariser()
        down.replies = [ValueError("no such model: gpt-7")] * 9
        errors = []
        options = {"summarizer": down, "backoff": 0.0, "on_failure": errors.append}
        with (
            pytest.warns(SummaryWarning) as found,
            middlewares(summariser(), **options)[door]() as middleware,
        ):
            sent = [await ask(middleware, is_async) for _ in range(2)][0]
        assert len(sent) == 7
        texts = [str(each.message) for each in found]
        reason = "ValueError: no such model: gpt-7"
        assert texts == [f"No summary was made: {reason}"]
        assert list(map(str, errors)) == ["no such model: gpt-7"] * 2

    def test_a_rejected_summary_warns_with_its_reason(self):
        refusing = model(default="I'm sorry, but I can't help with that.")
        with (
            pytest.warns(SummaryWarning, match="RefusedSummary: .+"),
            middlewares(summariser(), summarizer=refusing)["windowpane"]() as made,
        ):
            asyncio.run(ask(made, is_async=False))

    def test_a_node_warns_once_though_it_runs_again(self):
        down = summariser()
        down.replies = [ValueError("down")] * 9
        errors = []
        policy = Policy(trigger=("messages", 5), keep=("messages", 2))
        node = langgraph.summarize(down, policy, backoff=0.0, on_failure=errors.append)
        with pytest.warns(SummaryWarning) as found:
            [node({"messages": chat(7)}, {}) for _ in range(2)]
        assert (len(found), len(errors)) == (1, 2)

    async def test_langmem_warns_with_its_reason(self, is_async):
        down, errors = summariser(), []
        down.replies = [ValueError("down")] * 9
        node = langmem.SummarizationNode(
            model=down, max_tokens=40, max_summary_tokens=10, on_failure=errors.append
        )
        state = {"messages": chat(9)}
        call = node.ainvoke if is_async else partial(asyncio.to_thread, node.invoke)
        with pytest.warns(SummaryWarning, match="ValueError: down") as found:
            [await call(state) for _ in range(2)]
        assert (len(found), len(errors)) == (1, 2)

    def test_warnings_that_are_errors_cost_no_answer(self, caplog):
        down = summariser(ValueError("down"), ValueError("down"), ValueError("down"))
        with (
            warnings.catch_warnings(action="error"),
            middlewares(summariser(), summarizer=down)["langchain"]() as middleware,
        ):
            assert len(asyncio.run(ask(middleware, is_async=False))) == 7
        assert "compaction failed" in caplog.text
        assert "compaction broke" not in caplog.text

    def test_a_function_that_fails_itself_costs_no_answer(self, caplog):
        options = {"summarizer": lambda _: None, "on_failure": lambda _: 1 / 0}
        with (
            pytest.warns(SummaryWarning, match="expected a str"),
            middlewares(summariser(), **options)["windowpane"]() as middleware,
        ):
            assert len(asyncio.run(ask(middleware, is_async=False))) == 7
        assert "on_failure failed" in caplog.text

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("bad key sk-1", "bad key […]"),
            ("Authorization: Bearer abc.def", "Authorization: […]"),
            ("http://me:word@host/v1 is down", "http://[…]host/v1 is down"),
            (f"{'0123456789abcdef' * 2} is no key", "[…] is no key"),
            ("one\n\n two", "one two"),
            ("word " * 500, ("word " * 60)),
        ],
    )
    def test_a_reason_is_one_line_without_keys(self, text, told):
        assert describe_failure(HumanError(text)) == told


class HumanError(Exception):
    pass


class AsyncFiles:
    """A backend that has nothing but functions to be awaited, as Deep Agents' protocol
    has them; `missing`: how it says so."""

    def __init__(self, missing):
        self.files, self.media, self.loops = {}, [], set()
        if missing == "raises":
            for name in ("download_files", "upload_files", "write", "edit"):
                setattr(self, name, MagicMock(side_effect=NotImplementedError))

    async def adownload_files(self, paths):
        self.loops.add(asyncio.get_running_loop())
        found = self.files.get(paths[0])
        content = found.encode() if found else None
        return [MagicMock(error=None if found else "none", content=content)]

    async def aupload_files(self, files):
        self.media += files
        return [MagicMock(error=None)]

    async def awrite(self, file_path, content):
        await asyncio.sleep(0)
        self.files[file_path] = content
        return MagicMock(error=None)

    async def aedit(self, file_path, old_string, new_string):
        self.files[file_path] = self.files[file_path].replace(old_string, new_string)
        return MagicMock(error=None)


@pytest.mark.parametrize("missing", ["absent", "raises"])
class TestAsyncBackends:
    def make(self, missing, **options):
        files = AsyncFiles(missing)
        summarizing = model(default="They met.")
        options = FIVE_KEEP_TWO | options
        return files, deepagents.SummarizationMiddleware(
            summarizing, backend=files, **options
        )

    async def test_async_backend_gets_the_file(self, missing, is_async):
        files, middleware = self.make(missing)
        summary, *_ = await ask(middleware, is_async)
        ((path, text),) = files.files.items()
        assert path in summary
        assert "## Summarized at" in text

    async def test_async_backend_is_awaited_in_the_loop_of_the_agent(self, missing):
        files, middleware = self.make(missing)
        await ask(middleware, is_async=True)
        assert files.loops == {asyncio.get_running_loop()}

    async def test_async_backend_works_inside_a_running_loop(self, missing):
        files, middleware = self.make(missing)
        messages = chat(7)
        request = ModelRequest(
            model=middleware.model, messages=messages, state={"messages": messages}
        )
        middleware.wrap_model_call(request, lambda _: AIMessage("answer"))
        assert len(files.files) == 1

    async def test_history_file_grows(self, missing, is_async):
        files, middleware = self.make(missing)
        agent = create_agent(middleware.model, middleware=[middleware])
        shown = [{"type": "image", "base64": "AAAA", "mime_type": "image/png"}]
        messages = [HumanMessage(shown), *chat(9)]
        state, thread = {"messages": messages}, {"_summarization_session_id": "1"}
        state |= thread
        if is_async:
            await agent.ainvoke(state)
        else:
            await asyncio.to_thread(agent.invoke, state)
        assert len(files.media) == 1
        assert len(files.files) == 1
