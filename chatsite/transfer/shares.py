"""Links that show a conversation to anyone who has them: made, ended, found, and what
they show.

A link shows the conversation as it was when it was made: its messages up to a number,
in the wording that was in force then. What is written, edited or regenerated later is
not on it. What its owner deletes or hides from the model is gone from it at once.
"""

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from chatsite.turns.models import Share, Turn
from chatsite.turns.requests import has_request
from memory import transcript
from memory.models import Change, Conversation, Message, ModelCall
from memory.ranges import to_ranges, within

TOKEN_BYTES = 24
# Days that a link can be open for; none is open without an end.
DAYS = (1, 7, 30, 365)
USUAL_DAYS = 30
# Of one conversation: links that are open, and ended ones that are kept for staff.
MOST_OPEN, MOST_ENDED = 20, 100


class ShareError(ValueError):
    """A link that can't be made now; the message says why."""


@transaction.atomic
def create(
    conversation: Conversation,
    *,
    last_seq: int | None = None,
    with_view: bool = False,
    days: int = USUAL_DAYS,
) -> Share:
    """A link to the conversation as it stands, or as far as message `last_seq`.

    Raises ShareError where there is nothing to show, and for one link too many.
    """
    # Nothing is added to it meanwhile.
    Conversation.objects.select_for_update().get(pk=conversation.pk)
    if conversation.is_temporary:
        raise ShareError(_("A temporary conversation has no links: it does not last."))
    rows = conversation.shares.all()
    if still_open(rows).count() >= MOST_OPEN:
        text = _("This conversation has %(count)s links. Revoke one of them first.")
        raise ShareError(text % {"count": MOST_OPEN})
    newest = newest_to_share(conversation, last_seq)
    if newest is None:
        raise ShareError(_("There is no finished reply to share yet."))
    ended = rows.exclude(pk__in=still_open(rows)).order_by("-pk")
    rows.filter(pk__in=list(ended.values_list("pk", flat=True)[MOST_ENDED:])).delete()
    made = conversation.shares.create(
        token=secrets.token_urlsafe(TOKEN_BYTES),
        last_seq=newest,
        with_view=with_view,
        expires_at=Now() + timedelta(days=days),
    )
    made.refresh_from_db()
    conversation.changes.create(action=Change.Action.SHARE, seq=newest)
    return made


def newest_to_share(
    conversation: Conversation, last_seq: int | None = None
) -> int | None:
    """The number of the newest message that a link made now would show; None = there
    is none. What an open turn is still adding to is left out with its question."""
    rows = conversation.messages.filter(
        excluded_at=None, superseded_at=None, deleted_at=None
    )
    if last_seq is not None:
        rows = rows.filter(seq__lte=last_seq)
    unfinished = conversation.turns.filter(state__in=Turn.UNFINISHED).order_by("id")
    begun = unfinished.values_list("user_message__seq", flat=True).first()
    if begun is not None:
        rows = rows.filter(seq__lt=begun)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


def revoke(conversation: Conversation, pk: int) -> bool:
    """End a link of the conversation, for good; False: there is none to end."""
    rows = conversation.shares.filter(pk=pk, revoked_at=None)
    if not rows.update(revoked_at=Now()):
        return False
    conversation.changes.create(action=Change.Action.REVOKE)
    return True


def still_open(rows: QuerySet[Share]) -> QuerySet[Share]:
    return rows.filter(revoked_at=None, expires_at__gt=Now())


def of_conversation(conversation: Conversation) -> QuerySet[Share]:
    """Its open links, the newest first."""
    return still_open(conversation.shares.order_by("-pk"))


def of_user(user: AbstractBaseUser) -> QuerySet[Share]:
    """The open links of all conversations of a person, the newest first."""
    rows = Share.objects.filter(
        conversation__owner=user, conversation__deleted_at=None
    ).select_related("conversation")
    return still_open(rows).order_by("-pk")


def find(token: str) -> Share:
    """What a link opens. Raises Share.DoesNotExist: for one that never was, that was
    revoked or has ended, whose conversation or owner is gone, and where the site has
    no links, alike."""
    if not settings.SHARE_LINKS:
        raise Share.DoesNotExist
    rows = Share.objects.filter(
        conversation__deleted_at=None, conversation__owner__is_active=True
    )
    return still_open(rows).select_related("conversation").get(token=token)


def count_open(share: Share) -> None:
    rows = Share.objects.filter(pk=share.pk)
    rows.update(opens=F("opens") + 1, last_opened_at=Now())


def title_of(share: Share) -> str:
    """The title that its owner gave the conversation. Any other may quote a message
    that is not shown, so in its place stands the beginning of the first that is."""
    row = share.conversation
    if row.title_set_by == Conversation.TitleSource.USER:
        return row.title
    said = messages(share).filter(role=Message.Role.USER).order_by("seq").first()
    words = " ".join(transcript.words_for_title(said).split()) if said else ""
    most = transcript.TITLE_CHARS
    return words if len(words) <= most else words[: most - 1] + "…"


def messages(share: Share) -> QuerySet[Message]:
    """Those that the link shows. Without the model's view, calls of tools and their
    results are left out: they belong to it."""
    rows = share.conversation.messages.filter(_is_shown(share))
    if share.with_view:
        return rows
    return rows.exclude(role=Message.Role.TOOL).exclude(text="")


def replies(share: Share) -> QuerySet[Message]:
    """The messages whose requests the link may show, the newest first."""
    if not share.with_view:
        return Message.objects.none()
    rows = messages(share).filter(has_request(), role=Message.Role.ASSISTANT)
    return rows.order_by("-seq")


def _is_shown(share: Share) -> Q:
    stood = Q(superseded_at=None) | Q(superseded_at__gt=share.created_at)
    return stood & Q(seq__lte=share.last_seq, excluded_at=None, deleted_at=None)


def is_whole(share: Share, call: ModelCall) -> bool:
    """Whether the link shows every message that this request was made of, also those
    that its summaries were made of: only then the request can be shown."""
    refs, conversation = call.refs, share.conversation
    ruled = {seq for seq, *_rest in refs.get("rules", ())}
    single = {*refs.get("recalled", ()), refs["newest"], *ruled} - {None, 0}
    used = within(
        [*refs["window"], *refs["pinned"], *refs.get("steps", ()), *to_ranges(single)]
    )
    sent = conversation.summaries.filter(version__in=refs["summaries"])
    for row in sent.only("first_seq", "last_seq", "flags", "created_at"):
        # What was gone before the words of a summary were written is not in them.
        gone_since = (
            Q(excluded_at__gte=row.written_at)
            | Q(superseded_at__gte=row.written_at)
            | Q(deleted_at__gte=row.written_at)
        )
        used |= Q(seq__range=(row.first_seq, row.last_seq)) & gone_since
    rows = conversation.messages.filter(used)
    return not rows.exclude(_is_shown(share)).exists()
