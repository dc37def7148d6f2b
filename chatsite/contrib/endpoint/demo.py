"""A key for clients on a machine of one's own: `make run` prints it."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from chatsite.ops.demo_user import NAME as DEMO_USER
from chatsite.ops.demo_user import OWN_ADDRESSES

from . import keys
from .models import ApiKey

# The client, as the list of conversations names it.
NAME = "this machine"


def offer_demo_key(host: str, port: str) -> str:
    """Where clients of this machine find the site, with a key of the demo user that no
    run before has had; "" where others could reach it, too."""
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
