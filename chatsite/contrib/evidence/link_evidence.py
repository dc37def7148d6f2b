"""The evidence of a link: the file of a reply, without what its link does not show.

chatsite.features.sharing makes, shows and ends links; the owner chooses in its dialog
whether a link has evidence.
"""

import json
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.features.sharing.link_contents import shown_messages, title_of_share
from chatsite.features.sharing.models import Share
from chatsite.features.sharing.presenter import SharedContext
from memory.models import ModelCall

from . import contents, sentences, signing_keys
from .contents import OWN, TIMES

FIELD = "evidence"
# The choices: with every text that the link shows, or with those that the model read.
WHOLE, SHORT = "whole", "short"
WITHHELD = "its owner has left out a part of it"
# Links do not name their owner.
OWNER = "User"
# Of a message whose text is withheld.
PLAIN = ("seq", "role", "place", "why", "version")
# Of a summary, what changes later.
LATER = ("status",)


def make_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label=gettext_lazy("Evidence"),
        choices={
            "": gettext_lazy("none"),
            WHOLE: gettext_lazy("a signed file of each reply"),
            SHORT: gettext_lazy("the same, without texts that the model did not read"),
        },
        help_text=gettext_lazy(
            "Readers verify in their own browser what the model saw. The link then "
            "shows it, too."
        ),
        required=False,
    )


def draw_fact(share: Share) -> str:
    """Return the words for the list of links."""
    words = _("with evidence")
    return f" · {words}" if share.choices.get(FIELD) else ""


def draw_verification(share: Share, seen: SharedContext, request: HttpRequest) -> str:
    """Return the button that verifies the file of the shown reply."""
    if not share.choices.get(FIELD):
        return ""
    site = signing_keys.name_site(request)
    words = json.dumps(sentences.list_replacements(), ensure_ascii=False)
    keys = signing_keys.dump_keys(site)
    values = {"reply": seen.reply, "keys": keys, "words": words}
    return render_to_string("evidence/_verification.html", values, request)


def collect_shared_file(share: Share, call: ModelCall) -> dict[str, Any]:
    """Return the file for the request of a reply that the link shows.

    It has no text of messages that the link does not show, and nothing from after the
    request.
    """
    reply, at = call.message.seq, call.created_at
    file = contents.collect_file(
        share.conversation, reply, with_images=share.with_images
    )
    shown = {*shown_messages(share).values_list("seq", flat=True)}
    is_short = share.choices.get(FIELD) == SHORT
    dialog = [_reduce_dialog(each, shown, at, is_short) for each in file["dialog"]]
    own = file[OWN]
    return {
        **file,
        "subject": title_of_share(share),
        "parties": [{"name": OWNER}, *file["parties"][1:]],
        "dialog": dialog,
        "analysis": [
            _reduce_summary(each) for each in file["analysis"] if each[OWN]["is_sent"]
        ],
        OWN: {
            **own,
            "conversation": None,
            "branched_from": None,
            "request": _reduce_request(own["request"], share),
            "images": {} if share.without_rules else own["images"],
            "sections": _drop_rules(own["sections"], share),
            "changes": [
                {**each, "by": OWNER}
                for each in own["changes"]
                if not _is_later(each["created_at"], at)
            ],
            "calls": [each for each in own["calls"] if each["message__seq"] == reply],
            "policy": "{}",
        },
    }


def _reduce_dialog(
    each: dict[str, Any], shown: set[int], at: datetime, is_short: bool
) -> dict[str, Any]:
    own = each[OWN]
    is_left_out = is_short and own["place"] in ("owner", "rule")
    if own["seq"] in shown and not is_left_out:
        later = {n for n in TIMES if n in own and _is_later(own[n], at)}
        return {**each, OWN: {n: own[n] for n in own if n not in later}}
    plain = {name: own[name] for name in PLAIN if name in own}
    return {**each, "body": "", OWN: {**plain, "is_whole": False, "is_withheld": True}}


def _is_later(moment: str, at: datetime) -> bool:
    return datetime.fromisoformat(moment) > at


def _reduce_summary(each: dict[str, Any]) -> dict[str, Any]:
    own = {name: each[OWN][name] for name in each[OWN] if name not in LATER}
    return {**each, OWN: own | {"author": OWNER if own["author"] else None}}


def _reduce_request(request: dict[str, Any], share: Share) -> dict[str, Any]:
    if not share.without_rules:
        return request
    refs = _drop_rules(json.loads(request["refs"]), share)
    left = {"body": [], "missing": WITHHELD, "refs": contents.dump_open_value(refs)}
    return request | left


def _drop_rules(values: dict[str, Any], share: Share) -> dict[str, Any]:
    if not share.without_rules:
        return values
    return {name: value for name, value in values.items() if name != "rules"}
