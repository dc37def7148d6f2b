"""Requests that differ from what the conversation would send.

How they are composed, and which variation the user's next message has.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage

from memory import context, prompts, versions
from memory.engine import plan
from memory.engine.compose import Shape
from memory.engine.policy import Policy
from memory.models import Conversation, Message
from memory.models.message import read_langchain
from memory.ranges import to_ranges
from memory.view import rebuilding
from memory.view import variation as varying
from memory.view.variation import Variation

from .models import Turn

# The window of another preset can have this many messages before the newest.
MOST_OF_WINDOW = 400


def compose_varied(
    conversation: Conversation,
    refs: dict[str, Any],
    variation: Variation,
    *,
    model: str,
    limit: int,
    shape: Shape,
    with_images: bool,
    texts: Mapping[str, str] | None = None,
    newest: Message | None = None,
    tool_tokens: int = 0,
) -> context.RequestContext:
    """Return the request of these references, as sent to `model` with the variation.

    `limit`: what the model takes in tokens; `texts`: those that are not stored yet,
    `newest`: a message that may not be stored either.
    """
    texts = dict(texts or {})
    if variation.preset:
        other = copy(conversation)
        other.policy = {"preset": variation.preset}
        refs = _apply_preset(other, refs, newest, limit)
        texts[refs["fence"]] = context.get_fence(other)
    varied, words = varying.vary_refs(conversation, refs, variation)
    varying.keep_sent_images(varied, with_images=with_images)
    varied.pop("shape", None)
    varied |= shape.to_refs()
    return rebuilding.compose_refs(
        conversation,
        varied,
        model=model,
        texts=texts | words,
        newest=newest,
        tool_tokens=tool_tokens,
    )


def vary_built(
    built: context.RequestContext,
    conversation: Conversation,
    variation: Variation,
    newest: Message | None,
    **form: Any,
) -> context.RequestContext:
    """Return a request just composed to answer `newest`, with the variation."""
    varied = compose_varied(
        conversation, built.refs, variation, texts=built.texts, newest=newest, **form
    )
    return replace(varied, view=built.view)


def _apply_preset(
    other: Conversation, refs: dict[str, Any], newest: Message | None, limit: int
) -> dict[str, Any]:
    """Return the references under the preset of the copy `other`.

    They have the window that the preset keeps, what a search finds behind it, and its
    words around the summaries. No summary is written: those of the request stay where
    they begin before the window.
    """
    last = refs.get("newest") or other.next_seq
    newest = newest or other.messages.filter(seq=last).first()
    policy = context.policy_within(other, other.get_policy(), limit)
    window = _find_window(other, last, policy, limit)
    start = int(window[0].id or 0) if window else last
    pinned = sorted(n for n in varying.list_numbers(refs["pinned"]) if n < start)
    summaries = other.summaries.filter(
        version__in=refs["summaries"], first_seq__lt=start
    )
    # What no summary covers and the window does not reach.
    between = context.visible_messages(other).exclude(seq__in=pinned)
    covered = versions.last_covered(summaries)
    left_out = between.filter(seq__gt=covered, seq__lt=start).order_by("seq")
    rows = other.messages.filter(seq__in=pinned).order_by("seq")
    shown = [*read_langchain(rows), *window]
    notes = context.find_notes(other, newest, start - 1, shown, limit) if newest else []
    kept = {name: value for name, value in refs.items() if name != "shortened"}
    return kept | {
        "fence": prompts.hash_text(context.get_fence(other)),
        "summaries": sorted(summaries.values_list("version", flat=True)),
        "pinned": to_ranges(pinned),
        "window": to_ranges(int(each.id or 0) for each in window),
        "left_out": to_ranges(left_out.values_list("seq", flat=True)),
        "clipped": policy.truncate_tool_args,
        **context.refer_notes(notes),
    }


def _find_window(
    conversation: Conversation, before: int, policy: Policy, limit: int
) -> list[BaseMessage]:
    rows = context.visible_messages(conversation)
    latest = rows.filter(seq__lt=before).order_by("-seq")[:MOST_OF_WINDOW]
    window = read_langchain(latest)[::-1]
    start = plan.find_cutoff(
        window,
        policy.keep,
        count_tokens=context.conversation_counter(conversation),
        context_window=limit,
    )
    return window[start:]


def set_next(
    conversation: Conversation, variation: Variation | None, *, stays: bool = False
) -> None:
    """Store how the request for the next message differs; None: it does not.

    `stays`: the requests after it differ, too.
    """
    kept: dict[str, Any] = {}
    if variation and (said := variation.to_json()):
        kept = {"variation": said, "text": variation.text}
        kept |= {"stays": True} if stays else {}
    Conversation.objects.filter(pk=conversation.pk).update(next_request=kept)
    conversation.next_request = kept


def is_kept(conversation: Conversation) -> bool:
    """Return whether the next request's differences stay for those after it."""
    return bool(conversation.next_request.get("stays"))


def find_next(conversation: Conversation, turn: Turn | None = None) -> Variation | None:
    """Return how the next request differs: the turn's, or the next message's."""
    kept = conversation.next_request
    if not kept or kept.get("turn") not in (None, turn and turn.pk):
        return None
    return Variation.from_json(kept.get("variation", {}), kept.get("text", ""))


def find_off(conversation: Conversation) -> tuple[str, ...]:
    """Return the keys of what the next request leaves out."""
    varied = find_next(conversation)
    return varied.off if varied else ()


def switch_off(
    conversation: Conversation, off: tuple[str, ...], *, stays: bool | None = None
) -> None:
    """Have the next request leave out just these parts; its other differences stay.

    `stays`: also those after it; None: as before.
    """
    varied = find_next(conversation) or Variation()
    if stays is None:
        stays = is_kept(conversation)
    set_next(conversation, replace(varied, off=off), stays=stays)


def take_next(turn: Turn) -> Variation | None:
    """Return the variation of the turn's requests, and bind it to the turn.

    It is gone with the turn, or when another reply is requested.
    """
    conversation = turn.conversation
    kept = conversation.next_request
    if not kept or is_kept(conversation):
        return find_next(conversation, turn)
    mine = {"turn": turn.pk, "round": turn.attempts_before}
    if "turn" not in kept:
        kept = kept | mine
    elif not mine.items() <= kept.items():
        kept = {}
    if kept == conversation.next_request:
        return find_next(conversation, turn)
    # It may have been taken back meanwhile, or its words deleted.
    rows = Conversation.objects.filter(pk=conversation.pk)
    if rows.filter(next_request=conversation.next_request).update(next_request=kept):
        conversation.next_request = kept
        return find_next(conversation, turn)
    conversation.refresh_from_db(fields=["next_request"])
    return take_next(turn)
