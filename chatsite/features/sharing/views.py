"""The public pages of a link: its messages, and the context of replies."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from math import ceil
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatsite import slots
from chatsite.pages.presenters import snapshot
from chatsite.pages.views import find_image_response, read_number
from memory.images.image_source import without_bytes
from memory.view import rebuilding

from . import pace, presenter, services
from .link_contents import shown_messages, title_of_share
from .models import Share

View = Callable[..., HttpResponse]
ROBOTS = "noindex, nofollow, noarchive"
# The user of the templates, in place of the reader's session.
NO_ONE = AnonymousUser()


def shared_view(view: View, allow: Callable[[View], View] = require_safe) -> View:
    """Wrap a view that gets the share instead of its token.

    A token that opens nothing is 404, with one page for every reason; an address that
    asks too often gets 429.
    """

    @wraps(view)
    def guarded(request: HttpRequest, token: str, **numbers: int) -> HttpResponse:
        response = _answer_token(partial(view, **numbers), request, token)
        response["X-Robots-Tag"] = ROBOTS
        return response

    # No caching: the owner may revoke the link at any moment.
    return allow(never_cache(guarded))


def _answer_token(view: View, request: HttpRequest, token: str) -> HttpResponse:
    if seconds := ceil(pace.wait_for_address(request)):
        return explain_pace(request, seconds)
    try:
        share = services.find_share(token)
    except Share.DoesNotExist:
        pace.count_wrong(request)
        return render(request, "sharing/gone.html", status=404)
    return view(request, share)


def explain_pace(request: HttpRequest, seconds: int) -> HttpResponse:
    values, headers = {"seconds": seconds}, {"Retry-After": str(seconds)}
    text = render_to_string("sharing/too_many.html", values, request)
    return HttpResponse(text, status=429, headers=headers)


def _render_public(request: HttpRequest, template: str, **values: Any) -> HttpResponse:
    return render(request, template, {"user": NO_ONE, **values})


@shared_view
def show_page(request: HttpRequest, share: Share) -> HttpResponse:
    values: dict[str, Any] = {"share": share, "title": title_of_share(share)}
    at, after = read_number(request, "at"), read_number(request, "after")
    values["piece"] = presenter.read_piece(
        share, presenter.lead_to(share, at) if at else after
    )
    if share.with_view:
        values["seen"] = read_moment(request, share)
        values["opens_replay"] = "replay" in request.GET and values["seen"].is_whole
        card = reverse("shared-card", args=[share.token])
        address = f"{card}?reply={values['seen'].reply or ''}"
        values["card"] = request.build_absolute_uri(address)
    if request.method == "GET":
        services.count_opening(share)
    return _render_public(request, "sharing/page.html", **values)


@shared_view
def show_messages(request: HttpRequest, share: Share) -> HttpResponse:
    """Show the messages that follow the ones on the page."""
    piece = presenter.read_piece(share, read_number(request, "after"))
    return _render_public(request, "sharing/_piece.html", piece=piece)


@shared_view
def show_context(request: HttpRequest, share: Share) -> HttpResponse:
    seen = read_moment(request, share)
    return _render_public(request, "sharing/_context.html", share=share, seen=seen)


@shared_view
def show_moment(request: HttpRequest, share: Share) -> HttpResponse:
    """Both panes as they were when a reply was requested."""
    seen = read_moment(request, share)
    values: dict[str, Any] = {"share": share, "seen": seen}
    if seen.is_whole:
        values["messages"] = snapshot.messages_at(
            share.conversation, seen.call, shown_messages(share)
        )
    return _render_public(request, "sharing/_moment.html", **values)


@shared_view
def show_request(request: HttpRequest, share: Share) -> HttpResponse:
    """Show the `messages` of the request of a reply, without their images."""
    seen = read_moment(request, share)
    if not seen.is_whole or seen.without_rules:
        raise Http404
    wire = without_bytes(rebuilding.rebuild_context(seen.call).wire)
    text = json.dumps(wire, ensure_ascii=False, indent=2)
    return _render_public(request, "chat/_request_json.html", text=text)


@shared_view
def show_card(request: HttpRequest, share: Share) -> HttpResponse:
    """Return the picture of a moment, for sites that show a link with one."""
    seen = read_moment(request, share)
    # Here, because Pillow is needed for nothing else in this process.
    from .card import draw_moment

    return HttpResponse(draw_moment(share, seen), "image/png")


@shared_view
def show_shared_image(
    request: HttpRequest, share: Share, seq: int, place: int
) -> HttpResponse:
    """Return an image of a message that the link shows, if it shows images."""
    if not (share.with_images and shown_messages(share).filter(seq=seq).exists()):
        raise Http404
    response = find_image_response(request, share.conversation, seq, place)
    response["Content-Disposition"] = "attachment"
    return response


def read_moment(request: HttpRequest, share: Share) -> presenter.SharedContext:
    """Return the context of the reply that the URL names, else of the newest."""
    if not share.with_view:
        raise Http404
    seen = presenter.read_seen(share, read_number(request, "reply"))
    if seen is None:
        raise Http404
    instead = slots.draw("shared.instead", share=share, seen=seen, request=request)
    if not instead:
        return seen
    return replace(seen, replies=(), is_whole=False, instead=instead)
