"""The URL map: people and sessions here, conversations in chatsite.chat.urls."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from chatsite.chat import accounts, views

urlpatterns = [
    path("", include("chatsite.chat.urls")),
    path("accounts/login/", accounts.LoginView.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("accounts/signup/", accounts.signup, name="signup"),
    path("admin/", admin.site.urls),
    path("healthz", views.healthz, name="healthz"),
]
