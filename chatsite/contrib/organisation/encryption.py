"""Secrets of other places that the database keeps: encrypted, so that who reads the
database alone opens nothing with them.
"""

import base64
import hashlib

from cryptography.fernet import Fernet
from django.conf import settings

# The purposes, in words that stay: stored values are sealed with them.
SECRETS = "chatsite.signin.second_factor"
TOKENS = "chatsite.signin.recheck"


def seal(purpose: str, text: str) -> str:
    """For this purpose alone: sealed for another one it opens nothing."""
    return _make_cipher(purpose).encrypt(text.encode()).decode()


def open_sealed(purpose: str, sealed: str) -> str:
    """Raises cryptography.fernet.InvalidToken where it was sealed with another key."""
    return _make_cipher(purpose).decrypt(sealed.encode()).decode()


def _make_cipher(purpose: str) -> Fernet:
    # The key that outlives a change of SECRET_KEY, if there is one.
    key = settings.SIGNING_KEY or settings.SECRET_KEY
    derived = hashlib.sha256(f"{purpose}:{key}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))
