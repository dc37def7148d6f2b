"""The addresses of the timeline, below admin/memory/conversation/."""

from django.urls import path

from . import views

urlpatterns = [
    path("<int:pk>/timeline/", views.timeline, name="desk-timeline"),
    path("<int:pk>/request/<int:seq>/", views.inspect_request, name="desk-request"),
]
