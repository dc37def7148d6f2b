"""Hashing of passwords: as Django does it with Argon2, but one at a time."""

from threading import Lock

from django.contrib.auth.hashers import Argon2PasswordHasher

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
