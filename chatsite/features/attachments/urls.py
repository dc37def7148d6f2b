"""The addresses of files that are not sent yet, and of the images of messages."""

from django.urls import include, path

from . import views

unsent = [
    path("remove/", views.remove_file, name="attachment-remove"),
    path("reading/", views.choose_reading, name="attachment-reading"),
    path("image/", views.show_unsent, name="attachment-unsent"),
]

urlpatterns = [
    path("attachments/", views.upload_file, name="attachment-upload"),
    path("attachments/<uuid:uuid>/", include(unsent)),
    path(
        "c/<uuid:uuid>/messages/<number:seq>/images/<int:place>/",
        views.show_image,
        name="attachment-image",
    ),
]
