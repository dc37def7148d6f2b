"""OpenAI's wire: chat completions, which most clients and servers speak."""

import json

from .errors import WireError

PATHS = {"/v1/chat/completions": "POST", "/v1/models": "GET"}
# What OpenAI calls errors of a status.
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "server_error",
}


def write_error(error: WireError) -> bytes:
    kind = TYPES.get(error.status, "invalid_request_error")
    values = {"message": error.detail, "type": kind, "param": None, "code": error.code}
    return json.dumps({"error": values}, ensure_ascii=False).encode()
