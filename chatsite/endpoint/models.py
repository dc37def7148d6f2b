"""The tables of the endpoint: keys of clients."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class ApiKey(models.Model):
    """What a client shows to be let in: the right to send as one person.

    The key itself is known to the client alone; here is its SHA-256.
    """

    class Mode(models.TextChoices):
        OBSERVE = "observe", _("Observe: bytes go through unchanged")

    class Kind(models.TextChoices):
        PERSON = "person", _("of a person")

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
    kind = models.CharField(_("kind"), max_length=7, choices=Kind, default=Kind.PERSON)
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

    class Meta:
        default_permissions = ()
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        # Never the name, which a person has chosen: this goes into logs and lists.
        return gettext("API key %(id)s") % {"id": self.pk}
