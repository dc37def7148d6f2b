"""The public file of a link, and the verifier that its page runs."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.features.sharing.models import Share
from chatsite.features.sharing.presenter import read_seen
from chatsite.features.sharing.views import shared_view
from chatsite.pages.views import read_number
from chatsite.proxies import client_address

from . import signing_keys, transparency, views
from .link_evidence import FIELD, collect_shared_file


@shared_view
def download_shared_file(request: HttpRequest, share: Share) -> HttpResponse:
    """Return the signed file of a reply; 404 if the link shows no request of it."""
    if not share.choices.get(FIELD):
        raise Http404
    reader = share.pk, client_address(request)
    if refused := views.refuse_pace(reader):
        return refused
    seen = read_seen(share, read_number(request, "reply"))
    if seen is None or not seen.is_whole:
        raise Http404
    file = collect_shared_file(share, seen.call)
    try:
        data = signing_keys.sign_file(file, signing_keys.name_site(request))
    except signing_keys.NoKeyError:
        return HttpResponse(_("The site cannot sign now."), status=409)
    transparency.record_file(data, reader)
    return HttpResponse(data, content_type="application/json")


@require_safe
def show_verifier(request: HttpRequest) -> HttpResponse:
    """Return the code of verify.html as a module."""
    page = (views.FOLDER / "verify.html").read_text()
    code = page.partition("<script>")[2].partition("function showMessages")[0]
    module = f"{code.strip()}\nexport {{ verify }};\n"
    return HttpResponse(module, content_type="text/javascript")
