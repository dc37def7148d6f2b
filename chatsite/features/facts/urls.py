"""The addresses of facts: the page of a person, and what is answered in a chat."""

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
