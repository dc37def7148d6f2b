"""The URLs of facts: the page of a user, and the answers in a conversation."""

from django.urls import include, path

from . import views

fact = [
    path("edit/", views.edit_fact, name="memory-fact-edit"),
    path(
        "reword/", views.reword_fact, {"name": "reword-fact"}, name="memory-fact-reword"
    ),
    path("<slug:name>/", views.decide_fact, name="memory-fact"),
]

urlpatterns = [
    path("memory/", views.show_facts, name="facts"),
    path("memory/<number:pk>/<slug:name>/", views.change_fact, name="fact-change"),
    path("c/<uuid:uuid>/memory/facts/<number:pk>/", include(fact)),
]
