"""Addresses that open their page to every visitor who knows them.

No log may have their secret part. Readers of such pages share places and processor time
by address.
"""

import re

# Such an address is one of these and a secret behind it; True if it opens to everyone
# who knows the secret, False if it does something for the user who was sent it. Apps
# fill this in.
secret_paths: dict[str, bool] = {}


def list_open() -> tuple[str, ...]:
    """Return how addresses begin that open to everyone who knows their secret."""
    return tuple(start for start, is_open in secret_paths.items() if is_open)


def find_secret(path: str) -> str:
    """Return the secret part of an address; "" for one that has none."""
    for start in list_open():
        if path.startswith(start):
            return path.removeprefix(start).partition("/")[0]
    return ""


def hide_secrets(text: str) -> str:
    for start in secret_paths:
        text = re.sub(rf"(?<={re.escape(start)})[A-Za-z0-9_-]{{32}}", "…", text)
    return text
