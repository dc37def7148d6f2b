"""The addresses of the pages. The wires are no pages: asgi.py answers them."""

from django.urls import path

from . import views

urlpatterns = [
    path("account/keys/", views.make_api_key, name="api-key-make"),
    path("account/keys/<number:pk>/revoke/", views.revoke_key, name="api-key-revoke"),
]
