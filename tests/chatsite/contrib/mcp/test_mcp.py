"""MCP servers: a real one, over stdio and HTTP, that behaves and misbehaves."""

import asyncio
import json
import re
import sys
import time
from contextlib import nullcontext

import pytest
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatsite.contrib.mcp import checks
from chatsite.contrib.mcp import mcp_servers as mcp
from chatsite.features.tools import checks as tool_checks
from chatsite.features.tools import registry
from chatsite.features.tools.context import (
    AnswerLostError,
    CallCancelledError,
    CallProgress,
    PendingResult,
    conversation_id,
    listener,
)
from chatsite.features.tools.results import refine
from memory.engine.tokens import count_text
from tests.chatsite.features.tools.calls import context_of, run
from tests.patience import PATIENCE
from tests.servers import Site

from .mcp_servers import (
    PROGRAM,
    STDIO,
    HttpServer,
    call,
    tools_of,
    write,
)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One server for many tests, over both: starting a program takes long."""
    path = tmp_path_factory.mktemp("mcp") / "mcp.json"
    with pytest.MonkeyPatch.context() as patch, HttpServer() as server:
        patch.setenv("OPENAI_API_KEY", "sk-secret")
        given = {**STDIO, "env": {"GIVEN": "1"}}
        yield write(path, stdio=given, http=server.entry)
        mcp.close()


@pytest.fixture(params=["stdio", "http"])
def name(request, running, settings):
    settings.MCP_SERVERS = running
    return request.param


@pytest.fixture
def stdio(running, settings):
    settings.MCP_SERVERS = running


class TestWhatTheyOffer:
    async def test_hints_decide_what_needs_consent(self, name):
        found = await tools_of(name)
        asks = {name for name, each in found.items() if each.needs_consent}
        assert asks == {"delete_all", "says_nothing_about_itself"}
        again = {name for name, each in found.items() if each.runs_again}
        assert again == found.keys() - asks
        assert found["echo"].title == f"{name}: Say again"

    async def test_a_request_can_carry_them(self, stdio):
        echo = (await tools_of())["echo"]
        function = convert_to_openai_tool(echo.tool)["function"]
        assert function["name"] == "stdio_echo"
        assert function["parameters"]["required"] == ["text"]


class TestCalls:
    async def test_tools_answer_calls(self, name):
        echo = (await tools_of(name))["echo"]
        assert await call(echo, text="你好") == "You said: 你好"

    async def test_session_is_the_same_in_one_conversation_and_opaque(self, name):
        find_session = (await tools_of(name))["find_session"]
        found = []
        for number in (7, 7, 8, 0):
            token = conversation_id.set(number)
            found.append(await call(find_session))
            conversation_id.reset(token)
        first, again, other, without = found
        assert first == again != other
        assert re.fullmatch("[0-9a-f]{32}", first)
        assert without == "None"

    async def test_an_error_is_told_in_the_servers_words(self, name):
        with pytest.raises(ToolException, match="No such city"):
            await call((await tools_of(name))["fail"])

    async def test_a_large_answer_costs_its_budget(self, stdio, settings):
        whole = await call((await tools_of())["large"], size=5_000_000)
        assert len(whole) == 5_000_000
        sent = refine(whole, None, 1).sent
        assert count_text(sent) <= settings.TOOL_RESULT_TOKENS

    async def test_wrong_arguments_are_refused(self, stdio):
        with pytest.raises(ToolException):
            await call((await tools_of())["large"], size="many")

    async def test_a_question_of_the_server_is_not_passed_on(self, stdio):
        with pytest.raises(ToolException):
            await call((await tools_of())["ask"])

    async def test_a_program_gets_no_secret_of_the_site(self, stdio):
        names = (await call((await tools_of())["environment"])).split()
        assert "GIVEN" in names
        assert {"OPENAI_API_KEY", "SECRET_KEY", "DATABASE_URL"}.isdisjoint(names)


class TestProgress:
    async def test_progress_is_received(self, name):
        heard = []
        token = listener.set(heard.append)
        found = await call((await tools_of(name))["count"], steps=3, pause=0.4)
        listener.reset(token)
        assert found == "Counted."
        assert heard[0] == CallProgress(1, 3, "step 1")
        assert len(heard) >= 2

    async def test_a_flood_of_it_is_thinned(self, name):
        heard = []
        token = listener.set(heard.append)
        started = time.monotonic()
        await call((await tools_of(name))["count"], steps=2_000, pause=0)
        listener.reset(token)
        took = time.monotonic() - started
        assert 1 <= len(heard) <= took / mcp.SIGN_SECONDS + 1

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, "x", 1e300])
    def test_progress_drops_values_that_are_not_numbers(self, number):
        assert CallProgress.from_values(number, number) == CallProgress(None, None, "")


class TestChanges:
    @pytest.mark.parametrize("kind", ["stdio", "http"])
    async def test_the_list_is_read_again_when_it_has_changed(self, configure, kind):
        """Long before it would be."""
        with HttpServer() if kind == "http" else nullcontext() as server:
            configure(test=server.entry if server else STDIO)
            found = await tools_of("test")
            assert "learned" not in found
            await call(found["learn"])
            async with asyncio.timeout(20 * PATIENCE):
                while "learned" not in await tools_of("test"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert await call((await tools_of("test"))["learned"]) == "Learned."
            mcp.close()

    async def test_a_server_that_is_started_again_is_found(self, configure):
        with HttpServer() as server:
            configure(http=server.entry)
            echo = (await tools_of("http"))["echo"]
            assert await call(echo, text="a") == "You said: a"
            server.kill()
            server.start()
            assert await call(echo, text="b") == "You said: b"
            mcp.close()


class TestSse:
    async def test_sse_server_is_called_over_its_transport(self, configure):
        with HttpServer(PROGRAM, "sse", path="sse") as server:
            configure(old={**server.entry, "type": "sse"})
            found = await tools_of("old")
            assert await call(found["echo"], text="x") == "You said: x"
            assert found["brew"].look is None
            mcp.close()


class TestTasks:
    """Calls that a server turns into tasks, over HTTP: a program of one process is not
    there for the next one."""

    @pytest.fixture
    def over_http(self, running, settings):
        settings.MCP_SERVERS = running

    async def begin(self, **arguments):
        self.tools = await tools_of("http")
        return await run(self.tools["brew"].tool, context_of(), **arguments)

    async def look(self, handle, **task):
        """Return the result of a look once the server gives this state of the task."""
        if task:
            value = json.dumps(task)
            await call(self.tools["change_task"], task=handle["task"], value=value)
        return await self.tools["brew"].look(handle, context_of())

    async def test_the_result_comes_later(self, over_http):
        begun = await self.begin()
        assert isinstance(begun, PendingResult)
        assert begun.seconds == 2.5
        handle = json.loads(json.dumps(begun.handle))
        pending = await self.look(handle)
        assert (pending.handle, pending.blocked) == (handle, "")
        pending = await self.look(handle, status="input_required", pollIntervalMs=1e300)
        assert (pending.blocked, pending.seconds) == ("input_required", 5.0)
        answer = {"content": [{"type": "text", "text": "Two cups."}]}
        found = await self.look(handle, status="completed", result=answer)
        assert refine(found, None, 1).whole == "Two cups."

    @pytest.mark.parametrize(
        ("task", "error", "words"),
        [
            ({"status": "failed", "statusMessage": "No milk."}, ToolException, "milk"),
            (
                {"status": "failed", "error": {"code": 1, "message": "No cup."}},
                ToolException,
                "cup",
            ),
            (
                {
                    "status": "completed",
                    "result": {
                        "content": [{"type": "text", "text": "Cold."}],
                        "isError": True,
                    },
                },
                ToolException,
                "Cold",
            ),
            ({"status": "cancelled"}, CallCancelledError, "was cancelled"),
        ],
    )
    async def test_task_without_result_raises_an_error(
        self, over_http, task, error, words
    ):
        handle = (await self.begin()).handle
        with pytest.raises(error, match=words):
            await self.look(handle, **task)

    @pytest.mark.parametrize(
        "task", [{"status": "odd"}, {"status": "completed", "result": {"content": 3}}]
    )
    async def test_malformed_task_is_requested_again(self, over_http, task):
        """The next look requests it, as after any error that is not the tool's own."""
        handle = (await self.begin()).handle
        with pytest.raises(ValueError, match="validation error"):
            await self.look(handle, **task)

    async def test_a_server_hears_that_a_task_is_cancelled(self, over_http):
        handle = (await self.begin()).handle
        await self.tools["brew"].cancel(handle, context_of())
        with pytest.raises(CallCancelledError):
            await self.look(handle)

    async def test_forgotten_task_raises_an_error(self, over_http):
        await self.begin()
        with pytest.raises(ToolException, match="no such task"):
            await self.look({"task": "task-of-yesterday"})
        # Nor does it have anything to end: that is not tried again.
        await self.tools["brew"].cancel({"task": "task-of-yesterday"}, context_of())

    @pytest.mark.parametrize("name", ["a b", "a\0b", "x" * 300])
    async def test_task_without_valid_name_may_run(self, over_http, name):
        with pytest.raises(AnswerLostError):
            await self.begin(task=name)

    async def test_a_tool_that_has_to_be_one_is_offered_where_it_can(self, over_http):
        found = await tools_of("http")
        begun = await run(found["pour"].tool, context_of())
        assert isinstance(begun, PendingResult)

    async def test_a_program_brings_its_result_at_once(self, stdio):
        brew = (await tools_of())["brew"]
        assert (brew.look, brew.cancel) == (None, None)
        assert await call(brew) == "Brewed."


class TestTrouble:
    async def test_a_call_that_hangs_can_be_cancelled(self, stdio):
        found = await tools_of()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await call(found["hang"])
        assert await call(found["echo"], text="here") == "You said: here"

    async def test_dead_program_may_have_run_and_is_started_again(self, stdio):
        found = await tools_of()
        with pytest.raises(AnswerLostError, match="did not answer"):
            await call(found["die"])
        assert await call(found["echo"], text="again") == "You said: again"

    async def test_a_tool_that_was_changed_is_not_called(self, stdio):
        found = await tools_of()
        await call(found["change"])
        with pytest.raises(ToolException, match="changed or removed"):
            await call(found["echo"], text="my secret")
        # The next turn is offered what it now is: it claims nothing, so it has to ask.
        other = (await tools_of())["echo"]
        assert other.needs_consent
        assert await call(other, text="x", password="y") == "Sent x away."

    async def test_gone_server_was_not_called(self, configure):
        with HttpServer() as server:
            configure(http=server.entry)
            echo = (await tools_of("http"))["echo"]
            # It would wait for the connection that is kept.
            server.kill()
        with pytest.raises(ToolException, match="did not answer") as raised:
            await call(echo, text="x")
        assert not isinstance(raised.value, AnswerLostError)
        # It may be back soon: conversations keep it.
        assert "echo" in await tools_of("http")

    async def test_silent_servers_do_not_stop_others(self, configure):
        python = {"command": sys.executable}
        configure(
            missing={"command": "/no/such/program"},
            babbling={**python, "args": ["-c", "print('no protocol')"]},
            ending={**python, "args": ["-c", "raise SystemExit(3)"]},
            refusing={"url": "http://127.0.0.1:1/mcp"},
            nowhere={"url": "no address"},
            good={**STDIO, "hints": False},
        )
        found = await tools_of("good")
        # Hints can be ignored.
        assert all(each.needs_consent for each in found.values())
        assert not any(each.runs_again for each in found.values())
        broken = [each for each in mcp.servers() if each.name != "good"]
        assert all(each.error and not each.tools for each in broken)
        assert "calculate" in registry.available()

    async def test_silent_server_does_not_delay_other_tools(
        self, configure, monkeypatch
    ):
        monkeypatch.setattr(mcp, "READY_SECONDS", 0.1)
        silent = ["-c", "import time; time.sleep(60)"]
        configure(silent={"command": sys.executable, "args": silent})
        assert await tools_of("silent") == {}
        assert "calculate" in registry.available()


class Offered:
    """A tool as LangChain's adapter gives it out."""

    def __init__(self, name="tool", schema=None, description="Do it.", hints=None):
        self.name, self.description = name, description
        self.args_schema = {"type": "object"} if schema is None else schema
        self.metadata = {"mcp": {"tool": {"annotations": hints or {}}}}


class TestWhatIsAdmitted:
    def admitted(self, *offered):
        return [*mcp._admit(mcp.Server("s", {}), [*offered])]

    @pytest.mark.parametrize(
        "offered",
        [
            Offered(schema={"type": "string"}),
            Offered(schema=[]),
            Offered(schema={"type": "object", "title": "x" * 30_000}),
            Offered(schema={"type": "object", "properties": {"a": {"$ref": "#/no"}}}),
        ],
    )
    def test_tools_that_requests_cannot_carry_are_left_out(self, offered):
        found = self.admitted(offered, Offered(name="good"))
        assert [each.name for each in found] == ["s_good"]

    def test_number_of_tools_is_limited(self):
        many = [Offered(name=f"tool{number}") for number in range(1_000)]
        assert len(self.admitted(*many)) == mcp.MAX_TOOLS

    def test_description_and_title_are_cut(self):
        [found] = self.admitted(
            Offered(description="x" * 10_000, hints={"title": "y" * 10_000})
        )
        assert len(found.tool.description) == mcp.MAX_DESCRIPTION_CHARS
        assert len(found.title) == mcp.MAX_LABEL_CHARS

    @pytest.mark.parametrize(
        "hints", [{"read_only_hint": "yes"}, {"read_only_hint": 1}]
    )
    def test_hint_counts_only_as_plain_true(self, hints):
        [found] = self.admitted(Offered(hints=hints))
        assert found.needs_consent


class TestSettings:
    @pytest.mark.parametrize(
        "content",
        [
            "",
            "{}",
            "[]",
            '{"mcpServers": []}',
            '{"mcpServers": {"a": {}}}',
            '{"mcpServers": {"a": {"command": "x", "url": "y"}}}',
            '{"mcpServers": {"two words": {"command": "x"}}}',
            '{"mcpServers": {"a": 3}}',
            '{"mcpServers": {"a": {"url": "http://x", "type": "websocket"}}}',
            '{"mcpServers": {"a": {"url": "http://x", "type": "stdio"}}}',
            '{"mcpServers": {"a": {"command": "x", "type": "sse"}}}',
            '{"mcpServers": {"a": {"command": "x", "type": []}}}',
            '{"mcpServers": {"a": {"command": "x", "seconds": "10"}}}',
            '{"mcpServers": {"a": {"command": "x", "max_seconds": -1}}}',
        ],
    )
    def test_a_wrong_file_is_an_error_of_the_check_and_no_other(
        self, settings, tmp_path, content
    ):
        path = tmp_path / "mcp.json"
        path.write_text(content)
        settings.MCP_SERVERS = str(path)
        assert [each.id for each in checks.check_mcp_servers()] == ["chat.E005"]
        assert "calculate" in registry.available()

    def test_a_wrong_type_is_named(self, configure):
        configure(test={"url": "http://x.test", "type": "websocket"})
        [error] = checks.check_mcp_servers()
        assert "has the type 'websocket', expected http or sse" in error.msg

    def test_a_program_that_there_is_not_is_named(self, configure, settings):
        configure(test={"command": "/no/such/program"})
        settings.DEFAULT_TOOLS = ["test_may_come_yet", "serch"]
        [program] = checks.check_mcp_servers()
        [tool] = tool_checks.check_tools()
        assert (program.id, tool.id) == ("chat.W009", "chat.W010")
        assert "'/no/such/program'" in program.msg
        assert "'serch'" in tool.msg

    async def test_a_server_has_its_own_time_limits(self, configure):
        configure(a={**STDIO, "seconds": 90, "max_seconds": 1_000}, b=STDIO)
        assert (await tools_of("a"))["echo"].time_limits == (90, 1_000)
        assert (await tools_of("b"))["echo"].time_limits == (30, 600)

    def test_the_site_needs_no_package_where_there_are_none(self):
        code = (
            "import sys; from chatsite.features.tools import registry; "
            "registry.available(); import chatsite.asgi; "
            "print([n for n in sys.modules if n.split('.')[0] in "
            "('mcp', 'mcp_types', 'fastmcp')])"
        )
        site = Site({"MCP_SERVERS": ""})
        assert site.manage("shell", "--no-imports", "-c", code).strip() == "[]"

    def test_a_missing_file_is_one(self, settings):
        settings.MCP_SERVERS = "/no/such/file.json"
        assert [each.id for each in checks.check_mcp_servers()] == ["chat.E005"]

    def test_a_missing_package_is_named(self, configure, monkeypatch):
        monkeypatch.setitem(sys.modules, "fastmcp", None)
        configure(test=STDIO)
        [error] = checks.check_mcp_servers()
        assert "requirements/mcp.lock" in error.msg
        assert "calculate" in registry.available()
