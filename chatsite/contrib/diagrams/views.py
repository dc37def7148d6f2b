"""The page inside the frame of a diagram. It reads no session and says no word."""

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

SCRIPTS = ("mermaid/mermaid.tiny.js", "diagrams/diagram-frame.js")
# Without an origin, a network, or scripts besides its own. The library writes styles.
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
    "connect-src 'none'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts"
)


@require_safe
@cache_control(public=True, max_age=300)
@xframe_options_sameorigin
def show_diagram_frame(request: HttpRequest) -> HttpResponse:
    """Return the page in which diagram-frame.js draws a diagram.

    It waits for the source of the diagram.
    """
    scripts = [request.build_absolute_uri(static(name)) for name in SCRIPTS]
    page = render_to_string("diagrams/diagram_frame.html", {"scripts": scripts})
    response = HttpResponse(page)
    response["Content-Security-Policy"] = POLICY.format(scripts=" ".join(scripts))
    # A process of its own, in Chromium: the page around it goes on, and can close it.
    response["Document-Isolation-Policy"] = "isolate-and-credentialless"
    return response
