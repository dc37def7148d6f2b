"""The addresses of comparisons."""

from django.urls import include, path

from . import views

comparison = [
    path("compare/", views.show_comparison, name="conversation-compare"),
    path("compare.json", views.comparison_json, name="conversation-compare-json"),
]

urlpatterns = [path("c/<uuid:uuid>/", include(comparison))]
