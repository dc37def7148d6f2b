"""HTTP and WebSocket stacks put together; what daphne serves."""

import logging
from typing import Any

from django.core.asgi import get_asgi_application

from .environment import load_settings

load_settings()
django_application = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.conf import settings

from .headers import clean_scope
from .live import server
from .live.origins import SiteOriginValidator
from .live.routing import websocket_urlpatterns
from .ops.entrances import find_entrance
from .ops.load import keep_room
from .settings import env
from .turns import runner

pages = keep_room(django_application, settings.REQUESTS_AT_ONCE)


async def answer_http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    answer = find_entrance(scope["path"]).answer or pages
    await answer(scope, receive, send)


protocols = ProtocolTypeRouter(
    {
        "http": answer_http,
        # Whose session it is, the consumer checks for every command.
        "websocket": SiteOriginValidator(
            SessionMiddlewareStack(URLRouter(websocket_urlpatterns))
        ),
    }
)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    # Under a server that the lifecycle hooks do not know, the first request starts it.
    runner.ensure_sweeping()
    await protocols(clean_scope(scope), receive, send)


for slip in env.find_slips():
    logging.getLogger(__name__).warning(slip)
server.hook_into_daphne()
