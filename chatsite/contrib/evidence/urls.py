"""The addresses of evidence, and of the site's public keys."""

from django.urls import include, path

from . import views

conversation = [
    path("evidence.json", views.download_file, name="conversation-evidence-json"),
    path("evidence.zip", views.download_archive, name="conversation-evidence-zip"),
]

urlpatterns = [
    path("c/<uuid:uuid>/", include(conversation)),
    path(".well-known/windowpane-keys.json", views.show_keys, name="evidence-keys"),
]
