"""What went wrong in a turn or with a command: a short code for tables and clients, a
sentence for people. No text of a provider ever gets here.
"""

from chatsite.llm.errors import DETAILS

EXPLANATIONS = DETAILS | {
    "length": "The reply was cut off at the model's limit.",
    "no_finish_reason": "The connection to the model ended before the reply did.",
    "interrupted": "The server stopped while the reply was being written.",
    "no_reply": "There is no reply here. Retry asks the model for one.",
    "internal": "Something went wrong on this site. Your message is safe; try again.",
}


def explain(code: str) -> str:
    return EXPLANATIONS.get(code, EXPLANATIONS["internal"])


class CommandError(Exception):
    """A command that can not be done; it changes nothing and the socket stays open."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        client_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.client_id = client_id
        self.retry_after = retry_after
