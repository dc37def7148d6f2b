"""The manifest, the service worker and the page without network.

They read no session and name no user.
"""

import json
from hashlib import sha256

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

# The colour of the page at its start, in the light theme; as in variables.css.
PAPER, ACCENT = "#fbfaf7", "#12697a"
ICONS = ((192, "any"), (512, "any"), (512, "maskable"))
# The files of the offline page, besides itself.
OFFLINE_FILES = ("css/variables.css", "css/base.css", "css/plain.css", "icon.svg")


@require_safe
@cache_control(public=True, max_age=3600)
def show_manifest(request: HttpRequest) -> HttpResponse:
    icons = [
        {
            "src": static(f"installable/{purpose}-{size}.png"),
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for size, purpose in ICONS
    ]
    manifest = {
        "id": "/",
        "name": "Windowpane",
        "short_name": "Windowpane",
        "description": _("See what the model sees."),
        "lang": get_language(),
        "start_url": reverse("conversation-list"),
        "scope": "/",
        "display": "standalone",
        "background_color": PAPER,
        "theme_color": ACCENT,
        "icons": icons,
    }
    response = JsonResponse(manifest, content_type="application/manifest+json")
    # One for each language.
    response["Vary"] = "Accept-Language, Cookie"
    return response


@require_safe
@cache_control(no_cache=True)
def show_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker with the URLs that it caches.

    Its version, and so its cache, changes whenever one of its files changes.
    """
    page = render_to_string("installable/offline.html")
    files = [reverse("offline"), *map(static, OFFLINE_FILES)]
    version = sha256("\n".join([page, *files]).encode()).hexdigest()[:12]
    values = {"kept": json.dumps(files), "version": version}
    return render(
        request,
        "installable/service-worker.js",
        values,
        content_type="text/javascript; charset=utf-8",
    )


@require_safe
@cache_control(no_cache=True)
def show_offline_page(request: HttpRequest) -> HttpResponse:
    return render(request, "installable/offline.html")
