"""Deep Agents' summarisation middleware in an agent made by `create_agent`.

Without its file tools: what it writes to the history file no model here reads again.
"""

import tempfile
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware import SummarizationMiddleware
from deepagents.middleware.summarization import create_summarization_middleware

from ..models import Write
from .base import CONTEXT_WINDOW
from .langchain import AgentSystem


class DeepAgents(AgentSystem):
    """The factory's own settings; with `options`, those of the constructor."""

    def __init__(
        self, write: Write, *, context_window: int = CONTEXT_WINDOW, **options: Any
    ) -> None:
        super().__init__(write, context_window=context_window)
        self.folder = tempfile.TemporaryDirectory()
        backend = FilesystemBackend(root_dir=self.folder.name, virtual_mode=True)
        if options:
            self.use(
                SummarizationMiddleware(self.summarizer, backend=backend, **options)
            )
        else:
            self.use(create_summarization_middleware(self.summarizer, backend))
