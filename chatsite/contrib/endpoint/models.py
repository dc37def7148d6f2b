"""The tables of the endpoint: keys of clients, their conversations, and the pieces that
bodies are made of.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message, ModelCall


class ApiKey(models.Model):
    """What a client shows to be let in: the right to send as one person.

    The key itself is known to the client alone; here is its SHA-256.
    """

    class Mode(models.TextChoices):
        OBSERVE = "observe", _("Observe: sent unchanged")
        BOUND = "bound", _("Bound: with summaries")

    class KeyKind(models.TextChoices):
        PERSON = "person", _("of a person")
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
    # Its first characters, by which a person tells it from their others.
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

    # Of a gateway's key, while it speaks for its owner of this request.
    gateway_user: Any = None

    class Meta:
        default_permissions = ()
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        # Never the name, which a person has chosen: this goes into logs and lists.
        return gettext("API key %(id)s") % {"id": self.pk}

    @property
    def reader(self) -> Any:
        """The user who reads with it: of a gateway's key not the one it speaks for."""
        return self.gateway_user or self.owner


class ClientConversation(models.Model):
    """What makes a conversation one of a client: who sends it, and where it stands."""

    conversation = models.OneToOneField(
        Conversation, models.CASCADE, primary_key=True, related_name="of_client"
    )
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True)
    # The id that the client gives it, by the name of its header; "" = none.
    client = models.CharField(max_length=260, blank=True)
    # The first of the conversations that are branches of each other.
    family = models.UUIDField()
    parent = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    # That it goes on by the word of its owner, who has joined the two; and its family
    # without that, None = the same.
    joined = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    own_family = models.UUIDField(null=True)
    # That its client names besides: of a subagent or a single call, what it is for.
    linked = models.ForeignKey(
        Conversation, models.SET_NULL, null=True, related_name="+"
    )
    # The last message of a person in `linked` when it began.
    linked_at = models.PositiveIntegerField(null=True)
    # How many messages it shares with its parent: these are not kept twice.
    shared = models.PositiveIntegerField(default=0)
    # How many messages it has, with the shared ones.
    length = models.PositiveIntegerField(default=0)
    is_single = models.BooleanField(default=False)
    # The last message of a request that has no whole reply.
    open_position = models.PositiveIntegerField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["client"], name="of_client")]

    def __str__(self) -> str:
        return f"ClientConversation {self.pk}"

    @property
    def is_agent(self) -> bool:
        from .identity.hints import AGENT_MARK

        return AGENT_MARK in self.client

    def find_seq(self, position: int) -> int:
        """The number of the message there, which a branch shares with its parents."""
        above, before = self, None
        while above is not None:
            rows = ClientMessage.objects.filter(conversation=above.pk)
            if before:
                # What the parent has had since is not shared.
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
        """The number of a message that is shared with a parent, counted in the copy:
        rows of the parent are gone once it is erased, or a message there deleted."""
        last, seqs = self._copied
        return seqs[max(position - last - 1, -len(seqs))]

    @cached_property
    def _copied(self) -> tuple[int, list[int]]:
        """A position that is kept here, and the numbers up to it."""
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


class ClientMessage(models.Model):
    """A message by its hashes, as a client's next request is compared with it."""

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="client_messages"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    # From 0 on, with the messages that its conversation shares with its parents.
    position = models.PositiveIntegerField()
    digest = models.BinaryField(max_length=32)
    # Of all messages up to this one.
    chain = models.BinaryField(max_length=32)
    role = models.CharField(max_length=20)
    size = models.PositiveIntegerField()
    is_served = models.BooleanField(default=False)
    # Another form of one that was kept before: the client has changed it.
    is_again = models.BooleanField(default=False)
    # The last row of the transcript that was made of it.
    message = models.ForeignKey(Message, models.CASCADE, related_name="+")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "position"],
                condition=models.Q(is_again=False),
                name="client_message_once",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "chain"], name="client_message_chain"),
            models.Index(fields=["owner", "digest"], name="client_message_digest"),
        ]

    def __str__(self) -> str:
        return f"ClientMessage {self.pk}"


class BodyPiece(models.Model):
    """A part of bodies of a conversation, as it was sent: kept once.

    A text of the transcript is not in it, but where it stood.
    """

    # What can quote the conversation.
    TEXTS = ("text",)

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="body_pieces", db_index=False
    )
    number = models.PositiveIntegerField()
    digest = models.BinaryField(max_length=32)
    text = models.TextField(blank=True)
    # Where the text of `message` stood, and whether it was written in ASCII.
    hole = models.PositiveIntegerField(null=True)
    is_ascii = models.BooleanField(default=False)
    # The message that it says; None: what is beside the messages.
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, related_name="body_pieces"
    )
    # By which a client can name it: of an item of a served reply. "" = it is none.
    item_id = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "number"], name="body_piece_number"
            ),
        ]
        indexes = [
            models.Index(
                fields=["item_id"],
                condition=~models.Q(item_id=""),
                name="body_piece_item",
            ),
        ]

    def __str__(self) -> str:
        return f"BodyPiece {self.pk}"


class ClientRequest(models.Model):
    """What is known of a request besides what every request has: with which key it
    came, and why it went on the conversation that it is in."""

    call = models.OneToOneField(
        ModelCall, models.CASCADE, primary_key=True, related_name="of_client"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True)
    lineage = models.CharField(max_length=20)
    why = models.JSONField(default=list)
    # Of the client; "" = none.
    idempotency_key = models.CharField(max_length=120, blank=True)
    # The last message that it sent.
    position = models.PositiveIntegerField()
    # What its client has changed with it, as codes with spaces between them, and the
    # message of a person that the transcript says it below.
    changes = models.CharField(max_length=60, blank=True, default="", db_default="")
    noted_at = models.PositiveIntegerField(null=True)
    # SHA-256 of its tools, by which an agent is known that speaks again. "" = it is
    # from before they were kept.
    tools = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Of its reply, by the provider: a later request may go on from it. "" = none.
    response_id = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )

    class Meta:
        default_permissions = ()
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

    def __str__(self) -> str:
        return f"ClientRequest {self.pk}"
