"""The strip of figures for the template of the admin's first page."""

from typing import Any

from django import template

from ..charts import dashboard
from ..charts.days import DaysForm
from ..rights import rights_of

register = template.Library()


@register.simple_tag(takes_context=True)
def desk_strip(context: dict[str, Any]) -> dashboard.Strip | None:
    """None for those who may not see numbers."""
    request = context["request"]
    if not rights_of(request.user).metadata:
        return None
    return dashboard.build(*DaysForm.read(request.GET))
