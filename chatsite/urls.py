"""The URL map: accounts and sessions here, conversations in chatsite.pages.urls.

Features and extras have their own.
"""

from importlib.util import find_spec

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path, re_path
from django.views.defaults import page_not_found
from django.views.generic import RedirectView
from django.views.i18n import set_language

from .accounts import appearance, views
from .ops import health, settings_page

urlpatterns = [
    # What a proxy reads as another path than this map: it decides by the beginning.
    re_path(r"(?:^|/)\.{1,2}$|(?:^|/)\.{0,2}/|#", page_not_found, {"exception": None}),
    path("", include("chatsite.pages.urls")),
    *(
        path("", include(f"{app}.urls"))
        for app in (*settings.ALWAYS, *settings.OPTIONAL_APPS)
        if apps.is_installed(app) and find_spec(f"{app}.urls")
    ),
    path("accounts/login/", views.LoginView.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("accounts/signup/", views.sign_up, name="signup"),
    path(
        "accounts/password/", views.PasswordChangeView.as_view(), name="password-change"
    ),
    path("account/", views.show_account, name="account"),
    path("account/enter/", views.set_enter, name="account-enter"),
    path("account/sign-out/", views.sign_out, name="account-sign-out"),
    path("account/delete/", views.delete_own_account, name="account-delete"),
    path("theme/", appearance.set_theme, name="theme"),
    path("language/", set_language, name="language"),
    # Django's own page for it counts no wrong guesses.
    path(
        "admin/password_change/", RedirectView.as_view(pattern_name="password-change")
    ),
    path(
        "admin/settings/",
        admin.site.admin_view(settings_page.show_settings),
        name="site-settings",
    ),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.show_metrics, name="metrics"),
]

handler500 = "chatsite.ops.unavailable.server_error"
