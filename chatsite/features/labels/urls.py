"""The addresses of labels: of one label, and of those of a conversation."""

from django.urls import include, path

from . import views

label = [
    path("give/", views.give_label, name="label-new"),
    path("<number:pk>/give/", views.give_label, name="label-give"),
    path("<number:pk>/take/", views.take_label, name="label-take"),
    path("<number:pk>/rename/", views.rename_label, name="label-rename"),
    path("<number:pk>/delete/", views.delete_label, name="label-delete"),
]

urlpatterns = [
    path("labels/", include(label)),
    path("c/<uuid:uuid>/labels/", views.choose_labels, name="conversation-labels"),
]
