"""The labels of a conversation in an export, an import and a branch."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from django.utils.translation import gettext as _
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from memory import bundle
from memory.models import Conversation, Message

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
    """The names of the conversation's labels."""
    return list(conversation.labels.values_list("name", flat=True))


def write_names(
    conversation: Conversation,
    _messages: Mapping[int, Message],
    names: Sequence[str],
    batch: bundle.Batch,
) -> str:
    """Give the labels of these names, and say for which there was no room."""
    if not names:
        return ""
    with batch(0):
        given = services.find_or_make_labels(conversation.owner, names)
        services.give_labels(given, [conversation])
    keys = {label.key for label in given}
    missing = [name for name in names if services.make_key(name) not in keys]
    if not missing:
        return ""
    text = _(
        "imported without the labels %(names)s: you have %(limit)s, the most there can "
        "be."
    )
    return text % {"names": ", ".join(missing), "limit": services.MOST}


def copy_labels(
    conversation: Conversation, made: Conversation, _messages: Mapping[int, Message]
) -> None:
    """A branch has the labels of its conversation."""
    services.give_labels(conversation.labels.all(), [made])
