"""The address that logs one device out."""

from django.urls import path

from . import views

urlpatterns = [
    path(
        "account/devices/<number:pk>/log-out/",
        views.log_out_device,
        name="device-log-out",
    ),
]
