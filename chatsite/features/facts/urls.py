"""The URLs of facts: the page of a user, and the answers in a conversation."""

from django.urls import path

from . import views

urlpatterns = [
    path("memory/", views.show_facts, name="facts"),
    path("memory/<number:pk>/<slug:name>/", views.change_fact, name="fact-change"),
    path(
        "c/<uuid:uuid>/memory/facts/<number:pk>/<slug:name>/",
        views.decide_fact,
        name="memory-fact",
    ),
]
