"""The addresses of feedback."""

from django.urls import include, path

from . import views

reply = [
    path("", views.give, name="conversation-feedback"),
    path("why/", views.ask, name="conversation-feedback-why"),
]

urlpatterns = [
    path("c/<uuid:uuid>/messages/<number:seq>/feedback/", include(reply)),
]
