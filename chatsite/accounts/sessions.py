"""Session checks for sockets, one or many, by the rules of the HTTP side."""

from collections.abc import Set
from functools import lru_cache
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db.models import DateTimeField, QuerySet, Subquery, Value
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from memory.sql import prepared_rows

# The key of a session and the id of the user whose it was when the socket opened.
Holder = tuple[str | None, int]
# What the database says of a holder: the data of the session, as long as it is valid,
# and the password's hash of the user, who is active.
Proof = tuple[str | None, str | None]


def user_of(session_key: str | None) -> Any:
    """Return the session's user as it is now; may be AnonymousUser."""
    if not (session_key and session_key.isascii() and session_key.isalnum()):
        # No session has such a key, and not every database takes every character.
        return AnonymousUser()
    request = HttpRequest()
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # One of an earlier SECRET_KEY gets another key, which only an answer over HTTP can
    # tell the browser.
    session.cycle_key = lambda: None
    request.session = session
    return auth.get_user(request)


def select_session_data(session_key: Any, now: Any) -> Subquery:
    """Return a subquery of a valid session's data, to be read with other rows."""
    rows = Session.objects.filter(session_key=session_key, expire_date__gt=now)
    return Subquery(rows.values("session_data"))


def find_ended(
    holders: Set[Holder], proven: dict[Holder, Proof] | None = None
) -> set[Holder]:
    """Return the holders whose session has ended or is another user's now.

    One query for any number of them; only doubtful ones are checked one by one. A
    caller that asks repeatedly keeps `proven`: holders of whom the database says the
    same as when they were last found signed in are not checked again.
    """
    keys, ids = {key for key, _ in holders}, {user_id for _, user_id in holders}
    found = _read_proofs(keys=keys, ids=ids, now=timezone.now())
    data, passwords = {}, {}
    for pk, key, text in found:
        if pk:
            passwords[pk] = text
        else:
            data[key] = text
    said = {
        (key, user_id): (data.get(key), passwords.get(user_id))
        for key, user_id in holders
    }
    before = proven or {}
    doubtful = {
        holder
        for holder, proof in said.items()
        if proof != before.get(holder) and not _is_proof(holder, proof)
    }
    if proven is not None:
        proven.clear()
        proven.update({holder: said[holder] for holder in holders - doubtful})
    return {holder for holder in doubtful if user_of(holder[0]).pk != holder[1]}


@prepared_rows(now=DateTimeField())
def _read_proofs(keys: Any, ids: Any, now: Any) -> QuerySet[Any, Any]:
    rows = Session.objects.filter(session_key__among=keys, expire_date__gt=now)
    people = auth.get_user_model().objects.filter(pk__among=ids, is_active=True)
    # In this order: Django would look at each row for the sake of a number of its own.
    return people.values_list("pk", Value(""), "password").union(
        rows.values_list(Value(0), "session_key", "session_data"), all=True
    )


def _is_proof(holder: Holder, said: Proof) -> bool:
    session_data, password = said
    if password is None:
        return False
    user = auth.get_user_model()(pk=holder[1], password=password)
    return is_signed_in(user, session_data)


def is_signed_in(user: Any, session_data: str | None) -> bool:
    """Return if the session is this user's; if it is not, user_of() checks closer."""
    if user is None or session_data is None or not user.is_active:
        return False
    user_id, backend, password_hash = _read_claims(session_data)
    return (
        user_id == str(user.pk)
        and backend in settings.AUTHENTICATION_BACKENDS
        and constant_time_compare(password_hash, user.get_session_auth_hash())
    )


@lru_cache(maxsize=10_000)
def _read_claims(session_data: str) -> tuple[str, str, str]:
    """Return the user that a stored session claims; its signature is checked."""
    values = SessionStore().decode(session_data)
    names = (auth.SESSION_KEY, auth.BACKEND_SESSION_KEY, auth.HASH_SESSION_KEY)
    user_id, backend, password_hash = (str(values.get(name, "")) for name in names)
    return user_id, backend, password_hash
