"""Two conversations with one text in every column of every table, and every address of
the admin, with a row that exists behind each.
"""

import re
from dataclasses import dataclass
from html import unescape

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.db.models import ForeignKey, QuerySet
from django.urls import get_resolver, reverse
from django.utils import timezone

from chatsite.contrib.lab.examples.models import Example
from chatsite.features.facts.models import Fact
from chatsite.features.feedback.models import Feedback
from chatsite.features.review_queue.models import QueueItem
from chatsite.features.rules.models import Rule
from chatsite.turns.models import Allowance, Preferences, Turn
from memory import transcript
from memory.models import Conversation, Message
from tests.memory.scenes import plant, say, summarise

APPS = (
    *("memory", "chat", "desk"),
    *(
        each.label
        for each in apps.get_app_configs()
        if each.name in (*settings.ALWAYS, *settings.OPTIONAL_APPS)
    ),
)
TEXTS = {"CharField", "TextField", "JSONField", "SlugField", "EmailField"}
# Numbers in letters, and names that the site or its staff gave: no texts of users.
METADATA = {
    "facts.Fact.names",
    *(
        "token",
        "model",
        "uuid",
        "sha256",
        "policy_hash",
        "prompt_hash",
        "username",
        "preset",
    ),
    *(
        "trigger",
        "process",
        "owner",
        "compaction_owner",
        "target",
        "reason",
        "signature",
        "provider",
    ),
    # Parameters by which the keys of a user differ.
    *(f"endpoint.ApiKey.{each}" for each in ("name", "hint", "scopes")),
    "endpoint.ApiKey.models_allowed",
    # Of staff, for staff.
    *(f"switches.SwitchedOff.{each}" for each in ("kind", "name")),
    *(f"switches.SwitchedOff.{each}" for each in ("on_username", "on_reason")),
    "tree.Branch.client_id",
    # For everyone to read.
    *("announcements.Announcement.text", "announcements.Announcement.text_zh"),
}


def make_conversation(owner, word):
    """One whose replies can be rebuilt, with the word in all that was said."""
    policy = {"preset": "layered", "important": [re.escape(word[:60])]}
    row = transcript.create_conversation(
        owner, title=word[:200], system_prompt=word, policy=policy
    )
    for number in range(3):
        call = say(row, f"{word} {number}")
    plant(call, error=f"{word} failed"[:100], first_token_ms=5, tokens_input=9)
    failed = {"status": "failed", "error": f"{word} failed"[:100], "text": ""}
    summarise(row, 1, 2, text=word, structured={word: word}, flags=flags(word))
    summarise(row, 3, 4, **failed)
    make_turns(row, word, call)
    first = row.messages.first()
    Rule.objects.create(conversation=row, message=first, end=5, state="confirmed")
    stated = {"start": 0, "end": 5, "state": "kept", "text": word}
    Fact.objects.create(owner=owner, conversation=row, message=first, **stated)
    reply = row.messages.get(seq=2)
    Feedback.objects.create(
        conversation=row, message=reply, verdict="bad", comment=f"{word}, why"
    )
    found = {"source": reply.feedback.pk, "number": 2, "found_at": now()}
    QueueItem.objects.create(conversation=row, kind="feedback", note=word, **found)
    marked = {"author": owner, "label": "wrong", "correction": f"{word}, better"}
    Example.objects.create(conversation=row, message=reply, **marked)
    for app in {*APPS} - {"memory", "chat", "tools"}:
        for model in apps.get_app_config(app).get_models():
            if not rows_of(model, row).exists():
                fill(model, row)
    for rows in ([row], row.messages.all(), row.summaries.all()):
        LogEntry.objects.log_actions(owner.pk, rows, CHANGE, "Changed.")
    return row


def flags(word):
    return {"unsupported": [word], "missing": [word]}


def make_turns(row, word, call):
    values = {"conversation": row, "model": "m", "text": word, "call": call}
    messages = list(row.messages.order_by("seq"))
    done = {"reply": messages[1], "state": Turn.State.DONE, "started_at": now()}
    Turn.objects.create(user_message=messages[0], reply_seq=2, **values, **done)
    failed = {"state": Turn.State.FAILED, "error": "timeout", "finished_at": now()}
    Turn.objects.create(user_message=messages[2], reply_seq=4, **values, **failed)
    Allowance.objects.get_or_create(user=row.owner)
    Preferences.objects.get_or_create(user=row.owner)


def now():
    return timezone.now()


def fill(model, conversation):
    """A row of a table of the review app or another, with what has to be there."""
    values = {}
    for field in model._meta.concrete_fields:
        if value := some_value(field, conversation):
            values[field.name] = value
    return model._base_manager.create(**values)


def some_value(field, conversation):
    if isinstance(field, ForeignKey):
        first = conversation.messages.first()
        theirs = {Conversation: conversation, Message: first}
        theirs[get_user_model()] = conversation.owner
        other = field.related_model
        if other in theirs or field.null:
            return theirs.get(other)
        return rows_of(other, conversation).first() or fill(other, conversation)
    if field.has_default() or field.null or field.primary_key:
        return conversation.uuid if field.name == "conversation" else None
    kind = field.get_internal_type()
    values = {
        "PositiveIntegerField": 1,
        "PositiveSmallIntegerField": 1,
        "PositiveBigIntegerField": conversation.pk,
        "DecimalField": 1,
        "UUIDField": conversation.uuid,
    }
    values |= {"BinaryField": b"view", "DateField": now().date()}
    word = f"view{conversation.pk}" if field.unique else "view"
    return now() if kind == "DateTimeField" else values.get(kind, word)


def plant_everywhere(conversation, word, *, short="", also=()):
    """The word in place of every text of this conversation's rows, `short` where a
    column has no room for it; `also` names columns of metadata."""
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            columns = [field for field in text_columns(model) if wanted(field, also)]
            for row in rows_of(model, conversation) if columns else ():
                plant(row, **{f.name: text_for(f, row, word, short) for f in columns})


def text_columns(model):
    for field in model._meta.concrete_fields:
        is_text = field.get_internal_type() in TEXTS and not field.choices
        if is_text and not field.primary_key:
            yield field


def wanted(field, also):
    return METADATA.isdisjoint((field.name, str(field))) or field.name in also


def rows_of(model, conversation):
    names = {field.name for field in model._meta.concrete_fields}
    rows = QuerySet(model)
    if model is Conversation:
        return rows.filter(pk=conversation.pk)
    if "conversation" in names:
        key = model._meta.get_field("conversation")
        is_link = isinstance(key, ForeignKey)
        return rows.filter(conversation=conversation if is_link else conversation.uuid)
    if "message" in names:
        return rows.filter(message__conversation=conversation)
    return rows.all()


def text_for(field, row, word, short):
    if field.get_internal_type() == "JSONField":
        return in_place(getattr(row, field.name), word)
    fits = field.max_length is None or len(word) + 6 <= field.max_length
    text = word if fits else short[: field.max_length]
    # Two rows of one conversation may not have the same.
    is_id = field.model is Message and field.name == "client_id"
    return f"{text}{row.pk}"[: field.max_length] if is_id else text


def tool_call(word):
    return {"name": word, "args": {word: word}, "id": word, "type": "tool_call"}


def in_place(value, word):
    """Return this shape with the word in place of every text, and as one more key."""
    if isinstance(value, dict):
        return {key: in_place(one, word) for key, one in value.items()} | {word: word}
    if isinstance(value, list):
        return [in_place(one, word) for one in value] or [tool_call(word)]
    return word if isinstance(value, str) else value


# What the review pages ask for besides the conversation; a new name belongs here.
ARGUMENTS = {
    "pk": lambda row: row.pk,
    "person": lambda row: row.owner_id,
    "seq": lambda row: 2,
    "version": lambda row: 1,
    "experiment": lambda row: row.experiments.first().pk,
    "name": lambda row: "purge",
}
# What takes more than the right to see numbers, where the view does not say so itself.
NEEDS = {
    "review-purge": ("purge",),
    # With Django's permission to delete users.
    "review-erase-person": ("purge", "delete_user"),
    "review-bulk": ("purge",),
}
MOST_LINKS = 8
# Not pages, or the end of the walker's own session.
ELSEWHERE = {"logout", "jsi18n", "autocomplete", "view_on_site", "login"}
# Leads to the account's page for it.
ELSEWHERE |= {"password_change"}


@dataclass(frozen=True)
class Place:
    name: str
    url: str
    needs: tuple = ()

    @property
    def is_own(self):
        """A page of the review app, not one of Django's five for each table."""
        # Samples are a table of the app's admin, with names as Django gives them.
        is_table = self.name.startswith("experiments_sample_")
        return self.name.startswith(("review-", "experiment")) and not is_table


def patterns():
    """Name, arguments and view of each named pattern of the admin, and of those that
    leaves have below it."""
    resolver = get_resolver()
    admins = [
        part
        for part in resolver.url_patterns
        if getattr(part, "namespace", None) == "admin"
    ]
    others = [part for part in resolver.url_patterns if part is not admins[0]]
    todo = [(admins[0], (), "admin:"), *((part, (), "") for part in others)]
    while todo:
        part, names, space = todo.pop()
        names = (*names, *part.pattern.regex.groupindex)
        if hasattr(part, "url_patterns"):
            todo += [(inner, names, space) for inner in part.url_patterns]
        elif part.name in (None, *ELSEWHERE):
            continue
        elif space or hasattr(part.callback, "needs"):
            yield space + part.name, names, part.callback


def places(conversations):
    """All of them: lists, pages of the first and the last row, the review pages."""
    found = []
    for full_name, names, view in patterns():
        name = full_name.removeprefix("admin:")
        needs = NEEDS.get(name) or getattr(view, "needs", ())
        for values in values_for(name, names, conversations):
            found.append(Place(name, reverse(full_name, kwargs=values), needs))
    return found


def values_for(name, names, conversations):
    if not names:
        return [{}]
    if names == ("app_label",):
        return [{"app_label": app} for app in ("memory", "chat", "desk", "auth")]
    if names[0] in ("object_id", "id"):
        return [{names[0]: pk} for pk in keys(model_of(name))]
    found = [{key: ARGUMENTS[key](row) for key in names} for row in conversations]
    return list({str(values): values for values in found}.values())


def links(place, text):
    """Return the links of a review page to other views of itself: tabs,
    pages, filters.
    """
    if not place.is_own:
        return []
    own = re.escape(place.url)
    found = re.findall(rf'href="(?:{own})?(\?[^"#]+)', text)
    return [place.url + unescape(query) for query in dict.fromkeys(found)][:MOST_LINKS]


def model_of(name):
    """The table that one of Django's own patterns is about."""
    for model in admin.site._registry:
        if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}_"):
            return model
    raise AssertionError(f"{name}: which row shall be looked at?")


def keys(model):
    rows = list(model._base_manager.order_by("pk").values_list("pk", flat=True))
    return sorted({rows[0], rows[-1]}, key=str) if rows else []
