"""The addresses of evidence, and of the site's public keys."""

from django.apps import apps
from django.urls import include, path

from . import views

conversation = [
    path("evidence.json", views.download_file, name="conversation-evidence-json"),
    path("evidence.zip", views.download_archive, name="conversation-evidence-zip"),
]

urlpatterns = [
    path("c/<uuid:uuid>/", include(conversation)),
    path(".well-known/windowpane-keys.json", views.show_keys, name="evidence-keys"),
    path(
        ".well-known/windowpane-proof/<slug:sha256>.json",
        views.show_proof,
        name="evidence-proof",
    ),
]

if apps.is_installed("chatsite.features.sharing"):
    # It registers the converter of tokens.
    from chatsite.features.sharing import urls as _sharing_urls  # noqa: F401

    from . import link_views

    urlpatterns += [
        path(
            "s/<token:token>/evidence.json",
            link_views.download_shared_file,
            name="shared-evidence",
        ),
        path(
            ".well-known/windowpane-verify.js",
            link_views.show_verifier,
            name="evidence-verifier",
        ),
    ]
