"""The addresses of files that are not sent yet."""

from django.urls import path

from . import views

urlpatterns = [
    path("attachments/", views.upload_file, name="attachment-upload"),
    path(
        "attachments/<uuid:uuid>/remove/", views.remove_file, name="attachment-remove"
    ),
]
