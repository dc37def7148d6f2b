"""Long lists of the admin without a count of their rows: a page, and whether there is
a next one.
"""

from collections.abc import Iterator

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.paginator import Paginator
from django.http import HttpRequest

MAX_PAGE = 1_000_000


class OpenPaginator(Paginator):
    """Knows where it is, and not where the list ends."""

    def __init__(self, per_page: int, number: int, has_next: bool) -> None:
        super().__init__((), per_page)
        self.number, self.has_next = number, has_next

    @property
    def num_pages(self) -> int:
        return self.number + self.has_next

    def get_elided_page_range(
        self, number: int = 1, *, on_each_side: int = 2, on_ends: int = 1
    ) -> Iterator[int | str]:
        first = max(1, number - on_each_side)
        if first > 1:
            yield 1
        if first > 2:
            yield self.ELLIPSIS
        yield from range(first, self.num_pages + 1)
        if self.has_next:
            yield self.ELLIPSIS


class OpenChangeList(ChangeList):
    """Finds the keys of a page by an index alone, then its rows by their keys: skipping
    a thousand pages of texts would read them all."""

    def get_results(self, request: HttpRequest) -> None:
        if not 1 <= self.page_num <= MAX_PAGE:
            raise IncorrectLookupParameters
        start = (self.page_num - 1) * self.list_per_page
        found = self.queryset.values_list("pk", flat=True)
        keys = list(found[start : start + self.list_per_page + 1])
        if self.page_num > 1 and not keys:
            raise IncorrectLookupParameters
        has_next = len(keys) > self.list_per_page
        rows = {row.pk: row for row in self.root_queryset.filter(pk__in=keys)}
        shown = keys[: self.list_per_page]
        there = [rows[key] for key in shown if key in rows]
        # Left out here: a condition on it would have to read every row before.
        self.result_list = [row for row in there if not row.conversation.is_temporary]
        self.result_count = start + len(keys)
        # The same: how many there are without the filters is not counted.
        self.full_result_count = self.result_count
        self.show_full_result_count = False
        self.show_admin_actions, self.can_show_all = True, False
        self.multi_page = self.page_num > 1 or has_next
        self.paginator = OpenPaginator(self.list_per_page, self.page_num, has_next)
        self.previous_page = self._page(-1) if self.page_num > 1 else ""
        self.next_page = self._page(1) if has_next else ""

    def _page(self, step: int) -> str:
        return self.get_query_string({PAGE_VAR: self.page_num + step})
