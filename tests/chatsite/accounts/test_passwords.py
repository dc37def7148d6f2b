"""Hashing passwords takes no more of a machine than one hash does."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import argon2
import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher, get_hasher
from django.test import override_settings

from chatsite import settings as site


@pytest.fixture
def hasher():
    with override_settings(PASSWORD_HASHERS=site.PASSWORD_HASHERS):
        yield get_hasher()


@pytest.fixture
def most_at_once(monkeypatch):
    """A list of how many hashes ran whenever one more began."""
    running, found, lock = [], [], threading.Lock()

    def watched(work):
        def run(*args, **kwargs):
            with lock:
                running.append(1)
                found.append(len(running))
            time.sleep(0.01)
            try:
                return work(*args, **kwargs)
            finally:
                running.pop()

        return run

    for owner, name in (
        (argon2.low_level, "hash_secret"),
        (argon2.PasswordHasher, "verify"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    return found


def test_many_log_ins_are_hashed_one_at_a_time(hasher, most_at_once):
    encoded = hasher.encode("secret", "salt-salt-salt-salt")
    with ThreadPoolExecutor(8) as pool:
        guesses = [pool.submit(hasher.verify, "wrong", encoded) for _ in range(4)]
        made = [pool.submit(hasher.encode, "new", "salt-salt-salt") for _ in range(4)]
    assert not any(guess.result() for guess in guesses)
    assert len({each.result() for each in made}) == 1
    assert len(most_at_once) == 9
    assert max(most_at_once) == 1


def test_stored_hash_is_the_same_as_djangos(hasher):
    django = Argon2PasswordHasher()
    assert hasher.verify("secret", django.encode("secret", "salt-salt-salt-salt"))
    assert django.verify("secret", hasher.encode("secret", "salt-salt-salt-salt"))
    assert not hasher.must_update(django.encode("secret", hasher.salt()))
