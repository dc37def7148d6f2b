"""The labels of a conversation in an export, an import and a branch."""

from collections.abc import Sequence
from typing import Annotated

from django.utils.translation import gettext as _
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from memory import bundle
from memory.models import Conversation

from . import services


def _check_name(value: str) -> str:
    try:
        return services.clean_name(value)
    except services.LabelError:
        text = _("expected the name of a label")
        raise PydanticCustomError("label", text) from None


LabelName = Annotated[str, AfterValidator(_check_name)]
LabelNames = Annotated[list[LabelName], Field(max_length=services.MOST)]


def read_names(conversation: Conversation) -> list[str]:
    """Return the names of the conversation's labels."""
    return list(conversation.labels.values_list("name", flat=True))


def write_names(
    conversation: Conversation,
    rows: Sequence[str],
    batch: bundle.Batch,
    **_sent: object,
) -> str:
    """Give the labels of these names, and say for which there was no room."""
    if not rows:
        return ""
    with batch(0):
        given = services.find_or_make_labels(conversation.owner, rows)
        services.give_labels(given, [conversation])
    keys = {label.key for label in given}
    missing = [name for name in rows if services.make_key(name) not in keys]
    if not missing:
        return ""
    text = _(
        "imported without the labels %(names)s: you have reached the limit of "
        "%(limit)s."
    )
    return text % {"names": ", ".join(missing), "limit": services.MOST}


def copy_labels(conversation: Conversation, branch: Conversation, **_: object) -> None:
    """Give a branch the labels of its conversation."""
    services.give_labels(conversation.labels.all(), [branch])
