"""The public URLs that a browser requests to install the site."""

from django.urls import path

from . import views

urlpatterns = [
    path("manifest.webmanifest", views.show_manifest, name="manifest"),
    # At the root: a worker is in charge of the folder that it comes from.
    path("service-worker.js", views.show_worker, name="service-worker"),
    path("offline/", views.show_offline_page, name="offline"),
]
