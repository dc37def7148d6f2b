"""Logging in, being locked out, and signing up."""

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth import views as auth
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from .forms import SignupForm


class LoginView(auth.LoginView):
    redirect_authenticated_user = True
    extra_context = {"signup_enabled": lambda: settings.SIGNUP_ENABLED}


@never_cache
def locked_out(request: HttpRequest, *args: object) -> HttpResponse:
    """What django-axes answers to one wrong password too many, on any page."""
    values = {
        "failure_limit": settings.AXES_FAILURE_LIMIT,
        "cooloff_timedelta": settings.AXES_COOLOFF_TIME,
    }
    return render(request, "registration/locked_out.html", values, status=429)


@never_cache
@require_http_methods(["GET", "POST"])
def signup(request: HttpRequest) -> HttpResponse:
    if not settings.SIGNUP_ENABLED:
        raise Http404
    form = SignupForm(request.POST or None)
    if form.is_valid():
        user = form.save()
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("conversation-list")
    status = 400 if form.is_bound else 200
    return render(request, "registration/signup.html", {"form": form}, status=status)
