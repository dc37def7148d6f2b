"""The URLs of links: the owner's dialog, and the public pages."""

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from . import dialog, guests, views


class TokenConverter(StringConverter):
    """The token of a link, as far as there can be one."""

    regex = "[A-Za-z0-9_-]{32}"


register_converter(TokenConverter, "token")

owned = [
    path("", dialog.show_dialog, name="share"),
    path("create/", dialog.make_link, name="share-create"),
    path("<number:pk>/revoke/", dialog.revoke_link, name="share-revoke"),
]
shared = [
    path("", views.show_page, name="shared-page"),
    path("messages/", views.show_messages, name="shared-messages"),
    path("context/", views.show_context, name="shared-context"),
    path("moment/", views.show_moment, name="shared-moment"),
    path(
        "images/<number:seq>/<int:place>/", views.show_shared_image, name="shared-image"
    ),
    path("card.png", views.show_card, name="shared-card"),
    path("copy/", guests.try_copy, name="try-copy"),
    path("raw/", views.show_request, name="shared-raw"),
]

urlpatterns = [
    path("c/<uuid:uuid>/share/", include(owned)),
    path("s/<token:token>/", include(shared)),
]
