"""Budgets on the pages of users.

The chat shows a line when little is left, the account page shows all budgets.
"""

from django.http import HttpRequest
from django.template.loader import render_to_string

from . import services


def draw_warning(user_id: int, is_fragment: bool = False) -> str:
    low = [each for each in services.measure_for(user_id) if each.is_low]
    values = {"measured": low[0] if low else None, "is_fragment": is_fragment}
    return render_to_string("budgets/_warning.html", values)


def draw_budgets_section(request: HttpRequest) -> str:
    values = {"measured": services.measure_for(request.user.pk)}
    if not values["measured"]:
        return ""
    return render_to_string("budgets/_account.html", values, request)
