"""The URL map: people and sessions here, conversations in chatsite.chat.urls."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from chatsite.chat import account_views, accounts, import_views, looks, probes

urlpatterns = [
    path("", include("chatsite.chat.urls")),
    path("accounts/login/", accounts.LoginView.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("accounts/signup/", accounts.signup, name="signup"),
    path(
        "accounts/password/",
        account_views.PasswordChangeView.as_view(),
        name="password-change",
    ),
    path("account/", account_views.page, name="account"),
    path("account/export.json", account_views.export, name="account-export"),
    path("account/sign-out/", account_views.sign_out, name="account-sign-out"),
    path("account/delete/", account_views.delete, name="account-delete"),
    path("import/", import_views.take_in, name="import"),
    path("import/progress/", import_views.progress, name="import-progress"),
    path("theme/", looks.set_theme, name="theme"),
    path("language/", set_language, name="language"),
    # Django's own page for it counts no wrong guesses.
    path(
        "admin/password_change/", RedirectView.as_view(pattern_name="password-change")
    ),
    path("admin/", admin.site.urls),
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", probes.metrics, name="metrics"),
]

handler500 = "chatsite.unavailable.server_error"
