"""The URLs of the pages.

asgi.py answers the APIs, which are no pages.
"""

from django.urls import include, path

from . import views
from .lineage import views as lineage

conversation = [
    path("continue/", views.show_continuing, name="endpoint-continue"),
    path("why/", lineage.show_why, name="endpoint-why"),
    path("why/join/", lineage.join, name="endpoint-join"),
    path("why/separate/", lineage.separate, name="endpoint-separate"),
]

urlpatterns = [
    path("c/<uuid:uuid>/", include(conversation)),
    path("account/keys/", views.make_api_key, name="api-key-make"),
    path("account/keys/<number:pk>/revoke/", views.revoke_key, name="api-key-revoke"),
]
