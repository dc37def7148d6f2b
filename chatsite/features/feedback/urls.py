"""The addresses of feedback."""

from django.urls import include, path

from . import views

reply = [
    path("", views.post_feedback, name="conversation-feedback"),
    path("why/", views.ask_why, name="conversation-feedback-why"),
]

urlpatterns = [path("c/<uuid:uuid>/messages/<number:seq>/feedback/", include(reply))]
