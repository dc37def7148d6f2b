"""The addresses of providers. Some have the names by which allauth looks for them."""

from django.urls import path

from chatsite.accounts.views import LoginView

from . import connections, oidc

urlpatterns = [
    path(
        "accounts/oidc/<slug:provider_id>/login/",
        oidc.begin_login,
        name="openid_connect_login",
    ),
    path(
        "accounts/oidc/<slug:provider_id>/login/callback/",
        oidc.finish_login,
        name="openid_connect_callback",
    ),
    path(
        "account/connect/<slug:provider_id>/",
        connections.connect_provider,
        name="signin-connect",
    ),
    path(
        "account/disconnect/<slug:provider_id>/",
        connections.disconnect_provider,
        name="signin-disconnect",
    ),
    path("accounts/login/", LoginView.as_view(), name="account_login"),
]
