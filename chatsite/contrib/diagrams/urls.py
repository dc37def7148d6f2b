"""The address of the frame of diagrams."""

from django.urls import path

from . import views

urlpatterns = [path("diagram-frame/", views.show_diagram_frame, name="diagram-frame")]
