"""Addresses that open their page to anyone who knows them, of which no log may have the
secret part. Those who read such pages share places and processor time by address.
"""

import re

# Such an address is one of these and a secret behind it. Apps fill this in.
paths: list[str] = []
# The same of addresses that do something for the person who was sent them, and that
# share nothing by their secret.
secret_paths: list[str] = []


def find_secret(path: str) -> str:
    """The secret part of an address; "" for one that has none."""
    for start in paths:
        if path.startswith(start):
            return path.removeprefix(start).partition("/")[0]
    return ""


def hide_secrets(text: str) -> str:
    for start in (*paths, *secret_paths):
        text = re.sub(rf"(?<={re.escape(start)})[A-Za-z0-9_-]{{32}}", "…", text)
    return text
