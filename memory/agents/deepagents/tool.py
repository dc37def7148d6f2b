"""A tool by which the model summarises its own conversation."""

from collections.abc import Awaitable, Callable

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage
from langchain_core.tools import StructuredTool

from .history import SummarizationState
from .middleware import SummarizationMiddleware

DESCRIPTION = """\
Compact the conversation: older messages are replaced by a concise summary. Use it \
when the conversation gets long, before a new and unrelated task, or when the context \
of the last one is no longer needed. It takes no arguments."""


class SummarizationToolMiddleware(AgentMiddleware):
    """A middleware that adds the tool `compact_conversation`.

    `summarization` does the work; to summarise by its trigger too, it has to be in the
    agent's middleware itself. `system_prompt` is added to that of the agent, to say
    when to use the tool.
    """

    state_schema = SummarizationState

    def __init__(
        self,
        summarization: SummarizationMiddleware,
        *,
        system_prompt: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(system_prompt, str | None):
            name = type(system_prompt).__name__
            raise TypeError(f"system_prompt must be str or None, got {name}")
        self.system_prompt = system_prompt
        self.tools = [
            StructuredTool.from_function(
                name="compact_conversation",
                description=DESCRIPTION,
                func=summarization.compact_thread,
                coroutine=summarization.acompact_thread,
            )
        ]

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        return handler(self._advise(request))

    async def awrap_model_call(
        self,
        request: ModelRequest,
        handler: Callable[[ModelRequest], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        return await handler(self._advise(request))

    def _advise(self, request: ModelRequest) -> ModelRequest:
        if not self.system_prompt:
            return request
        told = request.system_message.content_blocks if request.system_message else []
        advice = {"type": "text", "text": self.system_prompt}
        message = SystemMessage(content_blocks=[*told, advice])
        return request.override(system_message=message)
