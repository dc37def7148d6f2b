"""The address of where a reply comes from."""

from django.urls import path

from . import views

urlpatterns = [
    path(
        "c/<uuid:uuid>/messages/<number:seq>/grounding/",
        views.show_grounding,
        name="conversation-grounding",
    ),
]
