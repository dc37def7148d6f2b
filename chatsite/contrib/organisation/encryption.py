"""Encryption of the secrets that the database keeps for other services.

A copy of the database alone is not enough to use them.
"""

import base64
import hashlib

from cryptography.fernet import Fernet
from django.conf import settings

# The purposes. They must not change: stored values are encrypted with them.
SECRETS = "chatsite.signin.second_factor"
TOKENS = "chatsite.signin.recheck"


def seal(purpose: str, text: str) -> str:
    """Encrypt the text for one purpose.

    The result can't be decrypted for another purpose.
    """
    return _make_cipher(purpose).encrypt(text.encode()).decode()


def open_sealed(purpose: str, sealed: str) -> str:
    """Decrypt a text that `seal` has encrypted for this purpose.

    Raises cryptography.fernet.InvalidToken if it was encrypted with another key.
    """
    return _make_cipher(purpose).decrypt(sealed.encode()).decode()


def _make_cipher(purpose: str) -> Fernet:
    # SIGNING_KEY stays valid when SECRET_KEY changes.
    key = settings.SIGNING_KEY or settings.SECRET_KEY
    derived = hashlib.sha256(f"{purpose}:{key}".encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))
