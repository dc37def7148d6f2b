"""Usage of the site by one user, for the account page."""

from typing import NamedTuple

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from chatsite.turns import limits
from chatsite.turns.models import Allowance
from memory import library
from memory.models import Message

# Messages are counted up to here, so that the page asks little of the database.
MOST_COUNTED = 10_000


class AccountUsage(NamedTuple):
    tokens_today: int
    budget: int  # of tokens a day; 0 = no limit
    conversations: int
    messages: int  # as many as are counted, at most


def find_usage(user: AbstractBaseUser) -> AccountUsage:
    stored = Allowance.objects.filter(user=user).first()
    allowance = stored or Allowance(user=user)
    own = library.list_own(user).order_by()
    messages = Message.objects.filter(conversation__in=own, deleted_at=None)
    return AccountUsage(
        tokens_today=limits.used_on(allowance, timezone.localdate()),
        budget=limits.budget_of(allowance),
        conversations=own.count(),
        messages=messages.order_by()[:MOST_COUNTED].count(),
    )
