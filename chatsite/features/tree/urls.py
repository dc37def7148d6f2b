"""The addresses of branches of a conversation."""

from django.urls import include, path

from . import views

tree = [
    path("", views.show_map, name="tree-map"),
    path("edit/", views.make_branch, name="tree-edit"),
    path("delete/", views.drop_branch, name="tree-delete"),
]

urlpatterns = [path("c/<uuid:uuid>/tree/", include(tree))]
