"""The address of guesses."""

from django.urls import path

# It registers the converter of tokens.
from chatsite.features.sharing import urls as _sharing_urls  # noqa: F401

from . import views

urlpatterns = [path("s/<token:token>/guess/", views.record_guess, name="quiz-guess")]
