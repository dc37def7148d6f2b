"""The addresses of rules."""

from django.urls import include, path

from . import views

rule = [
    path("edit/", views.edit_rule, name="memory-rule-edit"),
    path("reword/", views.reword_rule, {"name": "reword"}, name="memory-rule-reword"),
    path("<slug:name>/", views.decide_rule, name="memory-rule"),
]

urlpatterns = [path("c/<uuid:uuid>/memory/rules/<number:pk>/", include(rule))]
