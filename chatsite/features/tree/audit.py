"""The invariants of branches."""

from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, Q

from memory.integrity.audit import Violation, report_rows

from .models import Branch


def find_unlisted() -> Iterator[Violation]:
    """Yield branches without a row in the list, and wrong links between branches."""
    listed = Branch.objects.filter(tree=OuterRef("tree"), is_folded=False)
    rows = Branch.objects.filter(conversation__deleted_at=None, is_folded=True)
    lost = rows.exclude(conversation=None).exclude(Exists(listed))
    words = "no row of the list shows this branch"
    yield from report_rows(lost, "tree.listed", words)
    is_wrong = ~Q(parent__tree=F("tree")) | Q(seq__lte=F("parent__seq"))
    parted = Branch.objects.filter(is_wrong, parent__isnull=False)
    strange = ~Q(conversation__owner=F("owner")) | ~Q(conversation__tree=F("tree"))
    other = Branch.objects.filter(strange, conversation__isnull=False)
    for pk in (parted | other).order_by("pk").values_list("conversation_id", flat=True):
        yield Violation("tree.parted", pk or 0, "a branch that parts from nothing")
