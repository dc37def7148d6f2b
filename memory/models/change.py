"""Changes that the owner of a conversation made, beside sending messages."""

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from .conversation import Conversation

# Actions of apps: codes with their names.
APP_ACTIONS: dict[str, Any] = {}


def list_actions() -> list[tuple[str, Any]]:
    """Return every code of a change with its name."""
    return [*Change.Action.choices, *APP_ACTIONS.items()]


class Change(models.Model):
    """One act of the owner, in codes and numbers: never a word of the conversation.

    It is written with the change itself, or right after it, and deleted with the
    conversation.
    """

    class Action(models.TextChoices):
        # Actions on a message. The values are also in URLs and names of views.
        PIN = "pin", _("pinned a message")
        UNPIN = "unpin", _("unpinned a message")
        LEAVE_OUT = "leave-out", _("hid a message from the model")
        BRING_BACK = "bring-back", _("showed a message to the model again")
        DELETE = "delete", _("deleted a message")
        EDIT = "edit", _("edited a message")
        REGENERATE = "regenerate", _("asked for another reply")
        STOP = "stop", _("stopped a reply")
        # Actions on the summaries.
        REWRITE = "rewrite", _("edited a summary")
        RESTORE = "restore", _("restored a version")
        REINSTATE = "reinstate", _("undid a change of the summaries")
        REBUILD = "rebuild", _("summarised everything again")
        ACCEPT = "accept", _("summarised up to a message")
        SUMMARISE = "summarise", _("tried the summaries again")
        END_SUMMARY = "end-summary", _("stopped the summaries")
        # Actions on the settings.
        POLICY = "policy", _("changed the memory settings")
        SYSTEM_PROMPT = "system-prompt", _("changed the system prompt")
        MODEL = "model", _("chose a model")
        TOOLS = "tools", _("chose the tools")
        TITLE = "title", _("changed the title")
        # Actions on tool calls.
        ALLOW = "allow", _("allowed a tool call")
        REFUSE = "refuse", _("refused a tool call")
        CANCEL_CALL = "cancel-call", _("cancelled a tool call")
        # Actions on the conversation.
        BRANCH = "branch", _("branched it")
        PIN_LISTED = "pin-listed", _("pinned it in the list")
        UNPIN_LISTED = "unpin-listed", _("unpinned it in the list")
        ARCHIVE = "archive", _("archived it")
        UNARCHIVE = "unarchive", _("took it out of the archive")
        REMOVE = "remove", _("deleted it")
        UNDELETE = "undelete", _("undid its deletion")

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="changes"
    )
    action = models.CharField(max_length=13, choices=list_actions)
    # The number of a message or a version; for another reply, that of the one before.
    seq = models.PositiveIntegerField(null=True)
    version = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["conversation", "-created_at"], name="change_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.action} of conversation {self.conversation_id}"

    @classmethod
    def record_each(cls, conversations: Iterable[Conversation], action: str) -> None:
        """Record the same act on each of several conversations, in one statement."""
        cls.objects.bulk_create(
            cls(conversation=each, action=action) for each in conversations
        )
