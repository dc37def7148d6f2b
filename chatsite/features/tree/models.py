"""The table of branches that are shown as one conversation."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, PrivateRow


class Branch(PrivateRow):
    """A conversation that is shown as one with others, which begin as it does."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"
    )
    # The key of the conversation that all began with, which may be gone.
    tree = models.PositiveBigIntegerField(db_index=True)
    # Null: it is gone, but others part from it.
    conversation = models.OneToOneField(
        Conversation, models.SET_NULL, null=True, related_name="branch"
    )
    # What it parts from, and the number of its first message of its own.
    parent = models.ForeignKey(
        "self", models.CASCADE, null=True, related_name="children"
    )
    seq = models.PositiveIntegerField(default=0)
    # The client id of its first message: sent twice, it makes one branch.
    client_id = models.CharField(max_length=64, blank=True)
    # The list shows another branch.
    is_folded = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(PrivateRow.Meta):
        verbose_name = _("branch")
        verbose_name_plural = _("branches")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["tree", "client_id"],
                condition=~Q(client_id=""),
                name="branch_client_id_unique",
            ),
        ]
