"""A key for clients on the developer's machine; `make run` prints it."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from chatsite.ops.demo_user import NAME as DEMO_USER
from chatsite.ops.demo_user import OWN_ADDRESSES

from . import keys
from .models import ApiKey

# The name of the client in the list of conversations.
NAME = "this machine"


def offer_demo_key(host: str, port: str) -> str:
    """Return how clients here reach the site, with a new key of the demo user.

    Return "" where others could reach the site, too.
    """
    if not settings.DEBUG or host not in OWN_ADDRESSES:
        return ""
    owner = get_user_model().objects.filter(username=DEMO_USER).first()
    if owner is None:
        return ""
    rows = ApiKey.objects.filter(owner=owner, name=NAME, revoked_at=None)
    rows.update(revoked_at=Now())
    try:
        _, key = keys.create_api_key(owner, NAME)
    except keys.KeyLimitError:
        return ""  # the site serves all the same
    address = f"http://{host}:{port}"
    return (
        f"    Other clients: OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}\n"
        f"    and for Claude Code: ANTHROPIC_BASE_URL={address} "
        f"ANTHROPIC_AUTH_TOKEN=(the same key)\n"
    )
