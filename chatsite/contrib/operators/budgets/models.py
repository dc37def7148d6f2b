"""Budgets of users and groups, and the use of each user in each month."""

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.llm import pricing

# From this share on a page says so.
WARNING_SHARE = 0.8


class Budget(models.Model):
    """The allowance of a user, or of all users of a group together, for a month."""

    # In this month, as services.measure_budgets() sets it.
    used = 0.0

    class Unit(models.TextChoices):
        TOKENS = "tokens", _("tokens")
        DOLLARS = "dollars", _("dollars")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="budgets",
        verbose_name=_("user"),
    )
    group = models.ForeignKey(
        Group,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="budgets",
        verbose_name=_("group"),
        help_text=_("All its users together."),
    )
    unit = models.CharField(_("unit"), max_length=7, choices=Unit, default=Unit.DOLLARS)
    amount = models.DecimalField(
        _("in a month"),
        max_digits=14,
        decimal_places=2,
        validators=[MinValueValidator(0)],
    )

    class Meta:
        ordering = ("pk",)
        verbose_name = _("monthly budget")
        verbose_name_plural = _("monthly budgets")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(user=None) ^ models.Q(group=None),
                name="budget_of_one",
                violation_error_message=_("Choose a user or a group."),
            ),
            models.CheckConstraint(
                condition=models.Q(amount__gte=0), name="budget_amount"
            ),
            models.UniqueConstraint(fields=["user", "unit"], name="budget_user"),
            models.UniqueConstraint(fields=["group", "unit"], name="budget_group"),
        ]

    def __str__(self) -> str:
        return str(self.user or self.group)

    @property
    def share(self) -> float:
        amount = float(self.amount)
        return self.used / amount if amount else 1.0

    @property
    def percent(self) -> int:
        return int(self.share * 100)

    @property
    def is_used_up(self) -> bool:
        return self.share >= 1

    @property
    def is_low(self) -> bool:
        return self.share >= WARNING_SHARE

    def say_amount(self, amount: float | None = None) -> str:
        """Return the budget, or another amount in its unit, as text."""
        number = float(self.amount) if amount is None else amount
        if self.unit == self.Unit.DOLLARS:
            return pricing.format_dollars(number)
        return gettext("%(count)s tokens") % {"count": f"{round(number):,}"}

    @property
    def sentence(self) -> str:
        """The used share, as a sentence for the user or for a group member."""
        text = gettext(
            "You have used %(used)s of %(amount)s for this month (%(percent)s %%)."
        )
        if self.group:
            text = gettext(
                "Your group %(group)s has used %(used)s of %(amount)s for this month "
                "(%(percent)s %%)."
            )
        return text % {
            "percent": self.percent,
            "used": self.say_amount(self.used),
            "amount": self.say_amount(),
            "group": self.group,
        }


class MonthlyUse(models.Model):
    """The use of a model by a user in a month.

    It stays when conversations are deleted: deleting refunds nothing.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="monthly_use",
        verbose_name=_("user"),
    )
    # Its first day, in the site's time zone.
    month = models.DateField(_("month"))
    model = models.CharField(_("model"), max_length=100)
    requests = models.PositiveBigIntegerField(_("requests"), default=0)
    read = models.PositiveBigIntegerField(_("tokens read"), default=0)
    # Of them those from the provider's cache.
    cached = models.PositiveBigIntegerField(_("from the cache"), default=0)
    written = models.PositiveBigIntegerField(_("tokens written"), default=0)
    # What writing to the provider's cache cost besides, in tokens read.
    extra = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        ordering = ("-month", "user", "model")
        default_permissions = ()
        verbose_name = _("monthly use")
        verbose_name_plural = _("monthly use")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "month", "model"], name="use_once"),
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m} {self.model}"
