"""The user demo of a developer's machine, whose password is public."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from .management.commands.create_user import let_review

NAME = PASSWORD = "demo"  # noqa: S105 - the banner of `make run` says it
OWN_ADDRESSES = ("127.0.0.1", "::1", "localhost")


def prepare_demo_user(host: str) -> None:
    """Create the demo user with DEBUG.

    The user may review in the admin only where the site listens to this machine alone;
    elsewhere a demo user loses that right.
    """
    if settings.DEBUG:
        call_command("create_user", NAME, PASSWORD, "--if-missing", verbosity=0)
    may_review = settings.DEBUG and host in OWN_ADDRESSES
    user = get_user_model().objects.filter(username=NAME).first()
    # Another user may have the name, with a password of their own.
    if user is None or user.is_staff == may_review or not user.check_password(PASSWORD):
        return
    if may_review:
        let_review(user)
    else:
        user.is_staff = False
        user.save(update_fields=["is_staff"])
