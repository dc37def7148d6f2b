"""Texts that are sent with conversations without being part of one.

They are stored once by their hash, linked to their conversations, and removed with the
last of them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from django.db import connection, models
from django.db.models import Exists, OuterRef, QuerySet

from .models import Conversation, ModelCall, Prompt

BATCH = 500
# The keys of references to one text each.
TEXTS = ("system", "fence", "instruction", "tools_sha256", "tools_text")


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def named_in(refs: Mapping[str, Any]) -> list[str]:
    """Return the hashes of the texts that a request refers to."""
    said = (each[1] for each in (*rules_in(refs), *edits_in(refs), *facts_in(refs)))
    named = (*map(refs.get, TEXTS), *said)
    # Older imports accepted references of any shape.
    return list(dict.fromkeys(each for each in named if isinstance(each, str)))


def rules_in(refs: Mapping[str, Any]) -> list[Any]:
    """Return a request's references to rules (memory/rules/rule_source.py).

    References of another shape are left out: those of an imported request for a summary
    can have any.
    """
    return _read_shaped(refs.get("rules"), int, object, object)


def facts_in(refs: Mapping[str, Any]) -> list[Any]:
    """Return a request's references to facts of other conversations.

    References of another shape are left out.
    """
    return _read_shaped(refs.get("facts"), str, str)


def edits_in(refs: Mapping[str, Any]) -> list[Any]:
    """Return the messages that a request had in other words: numbers and hashes.

    References of another shape are left out.
    """
    return _read_shaped(refs.get("edited"), int, object)


def _read_shaped(found: Any, *kinds: type) -> list[Any]:
    """Return the lists in `found` that have values of these kinds."""
    return [
        each
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, list)
        and len(each) == len(kinds)
        and all(map(isinstance, each, kinds))
    ]


def keep_texts(conversation: Conversation, texts: Mapping[str, str]) -> None:
    """Store texts by their hashes, as the conversation's.

    Call it inside the transaction that records what refers to them: until it is
    committed, no erasure of another conversation removes them.
    """
    names = iter(sorted(texts))
    while batch := [*islice(names, BATCH)]:
        if _lock_linked(conversation, batch) == {*batch}:
            continue
        # On PostgreSQL this and erasures wait for each other; SQLite has one writer at
        # a time.
        while missing := set(batch) - _lock_texts(
            Prompt, "sha256", batch, "FOR KEY SHARE"
        ):
            rows = [Prompt(sha256=name, text=texts[name]) for name in sorted(missing)]
            Prompt.objects.bulk_create(rows, ignore_conflicts=True)
        _link_texts(Prompt, [(name, conversation.pk) for name in batch])


def _lock_linked(conversation: Conversation, names: list[str]) -> set[str]:
    """Lock and return the names that are linked to the conversation already.

    The links stay until the transaction ends, and a linked text is not removed.
    """
    links = Prompt.conversations.through
    mine = {"conversation_id": conversation.pk}
    return _lock_texts(links, "prompt_id", names, "FOR NO KEY UPDATE", **mine)


def _lock_texts(
    model: type[models.Model], name: str, names: list[str], how: str, **equal: int
) -> set[str]:
    """Lock the rows of these names and return the names.

    Written in SQL because each turn runs it: Django would take longer to compile it
    than the database to answer.
    """
    quote = connection.ops.quote_name
    conditions = [f"{quote(column)} = %s" for column in equal]
    marks = ", ".join(["%s"] * len(names))
    conditions.append(f"{quote(name)} IN ({marks})")
    lock = how if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {quote(name)} FROM {quote(model._meta.db_table)} "  # noqa: S608
            f"WHERE {' AND '.join(conditions)} ORDER BY {quote(name)} {lock}",
            [*equal.values(), *names],
        )
        return {found for (found,) in cursor.fetchall()}


def _link_texts(model: type[models.Model], pairs: Iterable[tuple[str, int]]) -> None:
    link = model.conversations.through
    rows = [link(prompt_id=name, conversation_id=pk) for name, pk in pairs]
    link.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)


def list_hashes(conversation: Conversation) -> list[str]:
    """Return the hashes of the texts that belong to the conversation."""
    return list(conversation.prompts.order_by("pk").values_list("pk", flat=True))


def unlink_texts(conversation: Conversation, names: set[str]) -> None:
    """Unlink texts from the conversation; call it inside a transaction."""
    links = Prompt.conversations.through.objects.filter(conversation=conversation)
    links.filter(prompt__in=names).delete()
    drop_unused(sorted(names))


def release_deleted_words(conversation: Conversation) -> None:
    """Unlink other words for deleted messages and their rules.

    Call it in a transaction.
    """
    unlink_texts(conversation, _find_deleted_words(conversation))


def _find_deleted_words(conversation: Conversation) -> set[str]:
    """Return the hashes of other words for deleted messages, and for their rules.

    Only hashes that no request was sent with for anything else. The rows of these rules
    may have been given new words since, or be gone.
    """
    calls = conversation.model_calls.order_by()
    if not calls.filter(refs__has_any_keys=["rules", "edited"]).exists():
        return set()
    deleted = conversation.messages.exclude(deleted_at=None)
    gone = set(deleted.values_list("seq", flat=True))
    erased: set[str] = set()
    needed: set[str] = set()
    for refs in calls.values_list("refs", flat=True).iterator():
        rules = [ref for ref in rules_in(refs) if ref[0] not in gone]
        edits = [ref for ref in edits_in(refs) if ref[0] not in gone]
        rest = named_in(refs | {"rules": rules, "edited": edits})
        needed.update(rest)
        erased.update(set(named_in(refs)) - set(rest))
    return erased - needed


def drop_unused(names: list[str]) -> None:
    """Remove those of these texts that belong to no conversation any more.

    Call it inside the transaction that removed the conversation.
    """
    unused = QuerySet(Prompt).filter(_is_unused(Prompt), pk__in=names)
    # Only unused texts are locked, never the site's prompt, which all requests use.
    held = list(unused.select_for_update().order_by("pk").values_list("pk", flat=True))
    # Check again: a request with one of them may have been recorded meanwhile.
    if held:
        QuerySet(Prompt).filter(_is_unused(Prompt), pk__in=held).delete()


def _is_unused(model: type[models.Model]) -> Exists:
    link = model.conversations.through
    return ~Exists(link.objects.filter(prompt_id=OuterRef("pk")))


def link_all(
    prompts: type[models.Model] = Prompt, calls: type[models.Model] = ModelCall
) -> None:
    """Link the texts to the conversations whose requests refer to them.

    Texts that no request refers to are removed. Safe to repeat.
    """
    rows = calls.objects.filter(purpose=ModelCall.Purpose.REPLY).order_by()
    known = set(QuerySet(prompts).values_list("pk", flat=True))
    for key in ("refs__system", "refs__fence"):
        pairs = rows.values_list(key, "conversation_id").distinct().iterator()
        while batch := [*islice(pairs, BATCH)]:
            # Imported references can have any shape.
            strings = (each for each in batch if isinstance(each[0], str))
            _link_texts(prompts, [each for each in strings if each[0] in known])
    QuerySet(prompts).filter(_is_unused(prompts)).delete()
