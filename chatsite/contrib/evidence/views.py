"""The downloads of evidence, and the site's public keys."""

import io
import json
import zipfile
from collections.abc import Callable, Hashable
from functools import wraps
from math import ceil
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chatsite.accounts.access import private_page
from chatsite.ops.pace import Pace
from chatsite.pages.views import read_number, respond_with_file
from chatsite.proxies import client_address
from chatsite.review import access_log
from chatsite.review.rights import rights_of
from memory import transcript
from memory.models import Conversation, ModelCall

from . import contents, signing_keys, transparency

ACTION = "prove"  # in the access log
FOLDER = Path(__file__).parent
VERIFIERS = ("verify.py", "verify.html")
# Errors from the references of an old import, which can have any shape.
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)
pace = Pace()

View = Callable[[HttpRequest, Conversation, bytes], HttpResponse]


def evidence_view(view: View) -> Callable[..., HttpResponse]:
    """Give a view the conversation of its address, and the signed file."""

    @wraps(view)
    def made(request: HttpRequest, uuid: UUID) -> HttpResponse:
        if refused := refuse_pace(request.user.pk):
            return refused
        conversation = find_conversation(request, uuid)
        reply, images = read_number(request, "reply"), "images" in request.GET
        try:
            file = contents.collect_file(conversation, reply, with_images=images)
            data = signing_keys.sign_file(file, signing_keys.name_site(request))
        except ModelCall.DoesNotExist:
            raise Http404 from None
        except UNREADABLE as error:
            if reply is None:
                raise
            raise Http404 from error
        except signing_keys.NoKeyError:
            text = _("The site has no key to sign with: manage.py signing_key rotate")
            return HttpResponse(text, status=409)
        transparency.record_file(data, request.user.pk)
        return view(request, conversation, data)

    return private_page("GET")(made)


def refuse_pace(reader: Hashable) -> HttpResponse | None:
    """Count a download, and return the answer if it is one too many."""
    if wait := pace.count_request(reader, settings.EVIDENCE_PER_MINUTE):
        headers = {"Retry-After": str(ceil(wait))}
        text = _("Too many downloads: wait a minute, then try again.")
        return HttpResponse(text, status=429, headers=headers)
    return None


def find_conversation(request: HttpRequest, uuid: UUID) -> Conversation:
    """Return a user's own conversation.

    Staff who may read and export get that of another user; the access log has it.
    """
    try:
        return transcript.get_for(request.user, uuid)
    except Conversation.DoesNotExist:
        rights = rights_of(request.user)
        if not (rights.content and rights.export):
            raise Http404 from None
    rows = Conversation.objects.filter(temporary_until=None, deleted_at=None)
    found = get_object_or_404(rows, uuid=uuid)
    reply = read_number(request, "reply")
    target = f"evidence #{reply}" if reply else "evidence"
    access_log.record_access(request, ACTION, found, target)
    return found


@evidence_view
def download_file(
    request: HttpRequest, conversation: Conversation, data: bytes
) -> HttpResponse:
    whole = HttpResponse(data, content_type="application/json")
    return respond_with_file(whole, conversation, "evidence.json")


@evidence_view
def download_archive(
    request: HttpRequest, conversation: Conversation, data: bytes
) -> HttpResponse:
    """Return the file with the keys and both verifiers."""
    keys = signing_keys.publish_keys(signing_keys.name_site(request))
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("evidence.json", data)
        archive.writestr("windowpane-keys.json", json.dumps(keys, indent=2))
        for name in VERIFIERS:
            archive.writestr(name, (FOLDER / name).read_bytes())
    packed = HttpResponse(whole.getvalue(), content_type="application/zip")
    return respond_with_file(packed, conversation, "evidence.zip")


@require_safe
def show_keys(request: HttpRequest) -> HttpResponse:
    answer = JsonResponse(signing_keys.publish_keys(signing_keys.name_site(request)))
    # Verifiers of other sites may read it too.
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


@require_safe
def show_proof(request: HttpRequest, sha256: str) -> HttpResponse:
    """Return the proof that a signed file is in the root of its day."""
    if pace.count_request(client_address(request), settings.EVIDENCE_PER_MINUTE):
        return HttpResponse(status=429, headers={"Retry-After": "60"})
    if not settings.EVIDENCE_ROOT_FILE:
        raise Http404
    proof = transparency.prove_inclusion(sha256)
    if proof is None:
        raise Http404
    return JsonResponse(proof, headers={"Access-Control-Allow-Origin": "*"})
