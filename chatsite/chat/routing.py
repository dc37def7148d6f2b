"""Where sockets lead."""

from django.urls import path

from .consumers import ConversationConsumer

websocket_urlpatterns = [path("ws/c/<uuid:uuid>/", ConversationConsumer.as_asgi())]
