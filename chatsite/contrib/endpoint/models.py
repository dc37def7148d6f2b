"""The tables of the endpoint: keys, clients' conversations, and body pieces."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message, ModelCall, PrivateRow


class ApiKey(models.Model):
    """A client's key, with which it sends as one user.

    Only the client knows the key itself; the row has its SHA-256.
    """

    class Mode(models.TextChoices):
        OBSERVE = "observe", _("Pass on unchanged")
        BOUND = "bound", _("Shorten when too long")

    class KeyKind(models.TextChoices):
        PERSON = "person", _("of a user")
        GATEWAY = "gateway", _("of a gateway, which sends for others")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="api_keys",
        verbose_name=_("user"),
    )
    name = models.CharField(_("name"), max_length=60)
    # 32 random bytes can't be guessed, so a hash without salt or work protects them.
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    # Its first characters, by which its owner recognises it.
    hint = models.CharField(_("begins with"), max_length=12, editable=False)
    kind = models.CharField(
        _("kind"), max_length=7, choices=KeyKind, default=KeyKind.PERSON
    )
    scopes = models.JSONField(_("scopes"), default=list)
    mode = models.CharField(_("mode"), max_length=7, choices=Mode, default=Mode.OBSERVE)
    # Names of models; none = all that the provider has.
    models_allowed = models.JSONField(_("models allowed"), default=list)
    # Tokens of one day that it may use of its owner's; None = all of these.
    tokens_per_day = models.PositiveIntegerField(_("tokens per day"), null=True)
    day = models.DateField(null=True, editable=False)
    tokens_used = models.PositiveBigIntegerField(
        _("tokens used on that day"), default=0, editable=False
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"), null=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True)
    # Written at most once a minute.
    last_used_at = models.DateTimeField(_("last used at"), null=True)

    # The gateway's own user, while its key is used for another user's request.
    gateway_user: Any = None

    class Meta:
        default_permissions = ()
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        # Never the name, which a user has chosen: this goes into logs and lists.
        return gettext("API key %(id)s") % {"id": self.pk}

    @property
    def reader(self) -> Any:
        """The user who reads with it; with a gateway's key, the gateway's own."""
        return self.gateway_user or self.owner


class ClientConversation(PrivateRow):
    """The client data of a conversation: its client, length and relations."""

    conversation = models.OneToOneField(
        Conversation, models.CASCADE, primary_key=True, related_name="of_client"
    )
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True)
    # The client's id for it, after the name of its header; "" = none.
    client = models.CharField(max_length=260, blank=True)
    # The first of the conversations that are branches of each other.
    family = models.UUIDField()
    parent = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    # The conversation that it continues because its owner joined the two, and its
    # family without that; None = the same.
    joined = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    own_family = models.UUIDField(null=True)
    # The main conversation of a subagent or a single call, named by the client.
    linked = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    # The last user message in `linked` when it began.
    linked_at = models.PositiveIntegerField(null=True)
    # How many messages it shares with its parent; these are stored once.
    shared = models.PositiveIntegerField(default=0)
    # How many messages it has, with the shared ones.
    length = models.PositiveIntegerField(default=0)
    is_single = models.BooleanField(default=False)
    # The last message of a request without a complete reply.
    open_position = models.PositiveIntegerField(null=True)

    class Meta(PrivateRow.Meta):
        indexes = [models.Index(fields=["client"], name="of_client")]

    @property
    def is_agent(self) -> bool:
        from .identity.hints import AGENT_MARK

        return AGENT_MARK in self.client

    def find_seq(self, position: int) -> int:
        """Return the number of the message at this position.

        A branch shares it with its parents.
        """
        above, before = self, None
        while above is not None:
            rows = ClientMessage.objects.filter(conversation=above.pk)
            if before:
                # Later messages of the parent are not shared.
                rows = rows.filter(pk__lt=before)
            at = rows.filter(position=position).order_by("is_again", "pk")
            if (seq := at.values_list("message__seq", flat=True).first()) is not None:
                return seq
            if position >= above.shared:
                break
            before = rows.order_by("pk").values_list("pk", flat=True).first() or before
            above = ClientConversation.objects.filter(pk=above.parent_id).first()
        return self.count_seq(position)

    def count_seq(self, position: int) -> int:
        """Return the number of a shared message, counted in the branch's copy.

        Rows of the parent are missing once it is erased, or a message there deleted.
        """
        last, seqs = self._copied
        return seqs[max(position - last - 1, -len(seqs))]

    @cached_property
    def _copied(self) -> tuple[int, list[int]]:
        """Return a position that has a row here, and the numbers up to it."""
        kept = self.conversation.client_messages.filter(position__gte=self.shared - 1)
        values = kept.order_by("position", "pk").values_list("position", "message__seq")
        rows = self.conversation.messages.filter(superseded_at=None)
        last, end = values.first() or (self.length - 1, self.conversation.next_seq)
        rows = rows.filter(seq__lte=end)
        seqs: list[int] = []
        before = ""
        for seq, role in rows.order_by("seq").values_list("seq", "role"):
            # Results that follow each other came in one message; its last row counts.
            if role == before == Message.Role.TOOL:
                seqs.pop()
            seqs.append(seq)
            before = role
        return last, seqs


class ClientMessage(PrivateRow):
    """The hashes of a message, with which the next request is compared."""

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="client_messages"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    # From 0, including the messages that its conversation shares with its parents.
    position = models.PositiveIntegerField()
    digest = models.BinaryField(max_length=32)
    # The hash of all messages up to this one.
    chain = models.BinaryField(max_length=32)
    role = models.CharField(max_length=20)
    size = models.PositiveIntegerField()
    is_served = models.BooleanField(default=False)
    # Another form of a stored message: the client has changed it.
    is_again = models.BooleanField(default=False)
    # The last row of the transcript made from it.
    message = models.ForeignKey(Message, models.CASCADE, related_name="+")

    class Meta(PrivateRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "position"],
                condition=models.Q(is_again=False),
                name="client_message_once",
            )
        ]
        indexes = [
            models.Index(fields=["owner", "chain"], name="client_message_chain"),
            models.Index(fields=["owner", "digest"], name="client_message_digest"),
        ]


class BodyPiece(PrivateRow):
    """A part of bodies of a conversation, as it was sent, stored once.

    It has no text of the transcript, but the place where that was.
    """

    # Columns that can quote the conversation.
    TEXTS = ("text",)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="body_pieces", db_index=False
    )
    number = models.PositiveIntegerField()
    digest = models.BinaryField(max_length=32)
    text = models.TextField(blank=True)
    # Where the text of `message` was, and whether it was written in ASCII.
    hole = models.PositiveIntegerField(null=True)
    is_ascii = models.BooleanField(default=False)
    # Its message; None: a part besides the messages.
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, related_name="body_pieces"
    )
    # The id by which a client can name an item of a reply; "" = no item.
    item_id = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta(PrivateRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "number"], name="body_piece_number"
            )
        ]
        indexes = [
            models.Index(
                fields=["item_id"],
                condition=~models.Q(item_id=""),
                name="body_piece_item",
            )
        ]


class ClientRequest(PrivateRow):
    """The client data of a request.

    The key it came with, and why it continues its conversation.
    """

    call = models.OneToOneField(
        ModelCall, models.CASCADE, primary_key=True, related_name="of_client"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True)
    lineage = models.CharField(max_length=20)
    why = models.JSONField(default=list)
    # The client's own; "" = none.
    idempotency_key = models.CharField(max_length=120, blank=True)
    # The last message that it sent.
    position = models.PositiveIntegerField()
    # The client's changes with it, as codes with spaces between them, and the user
    # message below which the transcript shows them.
    changes = models.CharField(max_length=60, blank=True, default="", db_default="")
    noted_at = models.PositiveIntegerField(null=True)
    # SHA-256 of its tools, by which a returning agent is recognised. "" = a request
    # from before they were stored.
    tools = models.CharField(max_length=64, blank=True, default="", db_default="")
    # The provider's id of its reply, which a later request may continue; "" = none.
    response_id = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )
    # What the provider reported beside its reply: counts of tokens, and codes.
    report = models.JSONField(default=dict, db_default={})

    class Meta(PrivateRow.Meta):
        indexes = [
            models.Index(
                fields=["owner", "idempotency_key"], name="client_request_again"
            ),
            models.Index(
                fields=["response_id"],
                condition=~models.Q(response_id=""),
                name="client_request_response",
            ),
        ]


class ProviderSummary(PrivateRow):
    """A provider's own summary of a conversation, as its client was sent it."""

    # Columns that can quote the conversation.
    TEXTS = ("block",)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="provider_summaries"
    )
    # The request with its reply; None: it was made apart from any reply.
    call = models.ForeignKey(
        ModelCall, models.CASCADE, null=True, related_name="provider_summaries"
    )
    # The API and the provider that can read it, by their names.
    api = models.CharField(max_length=20)
    provider = models.CharField(max_length=100, blank=True)
    # The block or item as JSON; "" = a message that it covers was deleted.
    block = models.TextField(blank=True)
    # The last message that it covers; it covers all before that, too.
    last_seq = models.PositiveIntegerField()
    # As the provider reported them; None: it did not.
    tokens = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)


class ProviderErasure(PrivateRow):
    """A reply that was erased here and that its provider is still asked to delete."""

    response_id = models.CharField(max_length=300)
    model = models.CharField(max_length=100)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now(), db_index=True)
