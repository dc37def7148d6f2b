"""The addresses of the acts, below admin/memory/conversation/."""

from django.urls import path

from . import bulk, views

urlpatterns = [
    path("<int:pk>/rebuild/", views.rebuild, name="desk-rebuild"),
    path("<int:pk>/restore/", views.restore, name="desk-restore"),
    path("<int:pk>/review/", views.review, name="desk-review"),
    path("<int:pk>/export/", views.export, name="desk-export"),
    path("<int:pk>/purge/", bulk.purge_page, name="desk-purge"),
    path("acts/<slug:name>/", bulk.perform, name="desk-acts"),
]
