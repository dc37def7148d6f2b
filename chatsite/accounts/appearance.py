"""The appearance of pages in one browser: cookies, so that the first byte has it.

The scripts write the same cookies (static/js/appearance.js, layout.js).
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from .access import lead_back

THEMES = {"system": _("System"), "light": _("Light"), "dark": _("Dark")}
PANES = ("open", "closed")
YEAR = 365 * 24 * 3600


def appearance_of(request: HttpRequest) -> dict[str, object]:
    """Return the appearance, as a context processor; ignore invalid cookies."""
    theme = _read_cookie(request, "theme", THEMES)
    pane = _read_cookie(request, "pane", PANES)
    scheme = "light dark" if theme == "system" else theme
    values = {"theme": theme, "themes": THEMES.items(), "scheme": scheme, "pane": pane}
    return {"appearance": values}


def _read_cookie(request: HttpRequest, name: str, allowed: dict | tuple) -> str:
    value = request.COOKIES.get(name)
    return value if value in allowed else next(iter(allowed))


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Set the theme without scripts; with them the page sets the cookie itself."""
    answer = lead_back(request)
    if request.POST.get("theme") in THEMES:
        answer.set_cookie(
            "theme",
            request.POST["theme"],
            max_age=YEAR,
            secure=settings.SITE_HTTPS,
            samesite="Lax",
        )
    return answer
