"""The addresses of files that are not sent yet, and of the images of messages."""

from django.urls import path

from . import views

urlpatterns = [
    path("attachments/", views.upload_file, name="attachment-upload"),
    path(
        "attachments/<uuid:uuid>/remove/", views.remove_file, name="attachment-remove"
    ),
    path(
        "attachments/<uuid:uuid>/reading/",
        views.choose_reading,
        name="attachment-reading",
    ),
    path("attachments/<uuid:uuid>/image/", views.show_unsent, name="attachment-unsent"),
    path(
        "c/<uuid:uuid>/messages/<number:seq>/images/<int:place>/",
        views.show_image,
        name="attachment-image",
    ),
]
