"""URLs of policy experiments, below a conversation in the admin."""

from django.urls import include, path

from . import views

experiment = [
    path("", views.show_experiment, name="experiment"),
    path("progress/", views.show_progress, name="experiment-progress"),
    path("cancel/", views.cancel_experiment, name="experiment-cancel"),
]
experiments = [
    path("", views.show_experiments, name="experiments"),
    path("<int:experiment>/", include(experiment)),
]

urlpatterns = [
    path("admin/memory/conversation/<int:pk>/experiments/", include(experiments)),
]
