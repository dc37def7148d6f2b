"""The URL patterns of sockets."""

from django.urls import path, re_path

from .consumer import ConversationConsumer, refuse_path

websocket_urlpatterns = [
    path("ws/c/<uuid:uuid>/", ConversationConsumer.as_asgi()),
    # Without it Channels raises an error for a path that matches nothing.
    re_path(r"", refuse_path),
]
