"""Passwords: how long they are, and hashing as Django does it, one at a time."""

from threading import Lock

from django.contrib.auth import password_validation
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils.translation import gettext as _

# Each hash has eight threads and 100 MB. Eight of them at once would leave no core to
# the replies of others, and a stranger can ask for as many as there are requests.
_TURN = Lock()


class PatientArgon2PasswordHasher(Argon2PasswordHasher):
    """The hashes of a process wait for one another; what is stored is the same."""

    def encode(self, password: str, salt: str) -> str:
        with _TURN:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _TURN:
            return super().verify(password, encoded)


class MinimumLengthValidator(password_validation.MinimumLengthValidator):
    """Django's, whose error Django 5.2 has in English only."""

    def get_error_message(self) -> str:
        template = _("The password is too short: it needs at least %(n)s characters.")
        return template % {"n": self.min_length}
