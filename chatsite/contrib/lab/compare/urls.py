"""The addresses of comparisons."""

from django.urls import include, path

from . import views

comparison = [
    path("compare/", views.show_comparison, name="conversation-compare"),
    path("compare.json", views.comparison_json, name="conversation-compare-json"),
]

costs = [
    path("costs/", views.show_history, name="conversation-costs"),
    path("costs/tools/", views.change_offered, name="conversation-costs-tools"),
    path("costs.json", views.history_json, name="conversation-costs-json"),
]

urlpatterns = [path("c/<uuid:uuid>/", include(comparison + costs))]
