"""Calls that an MCP server turns into tasks.

The words and requests are those of the extension "tasks" (SEP-2663) of the protocol of
2026-07-28, https://modelcontextprotocol.io. Needs the protocol's SDK, so it is imported
where a connection is made.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from langchain_core.tools import ToolException
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import Request, RequestParams, Result
from mcp_types.jsonrpc import INVALID_PARAMS
from pydantic import JsonValue

from chatsite.features.tools.context import CallCancelledError, PendingResult

from . import mcp_content

# What is kept with a call and sent back.
TASK_ID = re.compile(r"[\x21-\x7e]{1,200}")
USUAL_SECONDS, MOST_SECONDS = 5.0, 3600.0


class Task(Result):
    """A task as the server describes it; `result` or `error` once it has ended."""

    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: float | None = None
    result: dict[str, JsonValue] | None = None
    error: dict[str, JsonValue] | None = None


class BegunTask(Task):
    """The answer to a call that became a task, instead of the result."""

    result_type: Literal["task"]


class TaskParams(RequestParams):
    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams
    name_param = "taskId"


class TaskBegunError(Exception):
    """A call was answered with a task.

    The SDK expects the result from the code that it hands the task to, and would wait
    for it.
    """

    def __init__(self, task: BegunTask) -> None:
        super().__init__(task.task_id)
        self.task = task


class TaskExtension(ClientExtension):
    """The extension that announces to servers that tasks are supported."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=BegunTask, resolve=_hand_over)]


async def _hand_over(task: BegunTask, _: ClaimContext) -> NoReturn:
    raise TaskBegunError(task)


def to_pending(task: Task) -> PendingResult | None:
    """Return the pending answer of a tool whose call has become this task.

    None if the task has no name that can be kept.
    """
    if not TASK_ID.fullmatch(task.task_id):
        return None
    wanted = (task.poll_interval_ms or 0) / 1000
    seconds = wanted if 0 < wanted < MOST_SECONDS else USUAL_SECONDS
    # A server that asks for something in the middle of a task gets nothing from here.
    blocked = "input_required" if task.status == "input_required" else ""
    return PendingResult({"task": task.task_id}, seconds, blocked=blocked)


async def find(session: ClientSession, task_id: str) -> Any:
    """Return the result of SiteTool.look() for a task."""
    request = GetTask(params=TaskParams(task_id=task_id))
    try:
        task = await session.send_request(request, Task)
    except MCPError as error:
        if error.code == INVALID_PARAMS:
            raise ToolException("The server knows no such task any more.") from None
        raise
    if task.status == "completed":
        return _read_result(task)
    if task.status == "failed":
        raise ToolException(_find_reason(task) or "The task failed.")
    if task.status == "cancelled":
        raise CallCancelledError(_find_reason(task) or "The task was cancelled.")
    return to_pending(task)


async def cancel(session: ClientSession, task_id: str) -> None:
    request = CancelTask(params=TaskParams(task_id=task_id))
    try:
        await session.send_request(request, Result)
    except MCPError as error:
        # A server that has forgotten the task has nothing to end.
        if error.code != INVALID_PARAMS:
            raise


def _read_result(task: Task) -> list[dict[str, Any]]:
    answer = task.result or {}
    if not isinstance(answer.get("content"), list):
        raise ValueError("validation error: a result without content")
    return mcp_content.read_result(answer)


def _find_reason(task: Task) -> str:
    message = (task.error or {}).get("message")
    return message if isinstance(message, str) else task.status_message or ""
