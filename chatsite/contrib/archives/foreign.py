"""Common parts of the exports of other chats: source, ids and open branch."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from chatsite.features.importing.files.reading import ImportItemError
from chatsite.llm.streaming import clean_text


def make_source(name: str, key: object) -> str:
    """Return the source by which the site knows this conversation again."""
    if not isinstance(key, (str, int, float)) or key in ("", None):
        words = _("it has no id, so importing it again would duplicate it.")
        raise ImportItemError(words)
    return f"{name}:{clean_text(str(key))[:150]}"


def take_messages(item: dict[str, Any], key: str, form: type, site: str) -> Any:
    """Return the messages of a conversation, where its form has them."""
    if not isinstance(item.get(key), form):
        words = _("its messages are not in the form of %(site)s. Download them again.")
        raise ImportItemError(words % {"site": site})
    return item[key]


def find_branch(leaf: object, parents: Mapping[str, object]) -> list[str]:
    """Return the path from the first message to this one."""
    path, seen = [], set()
    while isinstance(leaf, str) and leaf in parents and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def open_nodes(item: dict[str, Any], site: str) -> tuple[list[Any], list[Any]]:
    """Return the messages up to the one shown last, and the other branches."""
    mapping = take_messages(item, "mapping", dict, site)
    nodes = {n: v if isinstance(v, dict) else {} for n, v in mapping.items()}
    leaf = item.get("current_node")
    if not isinstance(leaf, str) or leaf not in nodes:
        leaves = [name for name, node in nodes.items() if not node.get("children")]
        leaf = leaves[-1] if leaves else None
    path = find_branch(leaf, {name: node.get("parent") for name, node in nodes.items()})
    rest = nodes.keys() - {*path}
    shown, others = (nodes[n] for n in path), (nodes[n] for n in rest)
    return _pick_messages(shown), _pick_messages(others)


def _pick_messages(nodes: Iterable[dict[str, Any]]) -> list[Any]:
    found = (node.get("message") for node in nodes)
    return [message for message in found if isinstance(message, dict)]
