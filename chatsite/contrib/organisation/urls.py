"""The URLs of providers and of the second factor.

Some have the names that allauth looks up.
"""

from django.conf import settings
from django.urls import path

from chatsite.accounts.views import LoginView

from .configuration import find_saml

urlpatterns = []
if settings.SIGNIN_PROVIDERS or settings.SECOND_FACTOR != "no":
    from . import connections, oidc

    login = "accounts/oidc/<slug:provider_id>/login/"
    urlpatterns = [
        path(login, oidc.begin_login, name="openid_connect_login"),
        path(f"{login}callback/", oidc.finish_login, name="openid_connect_callback"),
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
if find_saml(settings.SIGNIN_PROVIDERS):
    from .saml import login as saml

    there = "accounts/saml/<slug:provider_id>/"
    urlpatterns += [
        path(f"{there}login/", saml.begin_saml, name="signin-saml"),
        path(f"{there}answer/", saml.receive_answer, name="signin-saml-answer"),
        path(f"{there}finish/", saml.finish_saml, name="signin-saml-finish"),
        path(f"{there}metadata/", saml.show_metadata, name="signin-saml-metadata"),
    ]
if settings.SECOND_FACTOR != "no":
    from .second_factor import codes as second
    from .second_factor import passkeys

    here = "account/second-factor/"
    urlpatterns = [
        path("accounts/login/", second.StagedLoginView.as_view()),
        *urlpatterns,
        path("accounts/code/", second.ask_at_login, name="mfa_authenticate"),
        path(here, second.set_up, name="signin-set-up"),
        path(f"{here}prove/", second.prove_again, name="signin-prove"),
        path(f"{here}codes/", second.renew_codes, name="signin-codes"),
        path(f"{here}off/", second.turn_off, name="signin-turn-off"),
        path("accounts/passkey/", passkeys.log_in_by_passkey, name="signin-passkey"),
        path(f"{here}passkeys/", passkeys.manage_passkeys, name="signin-passkeys"),
        path(
            f"{here}passkeys/<int:pk>/remove/",
            second.remove_passkey,
            name="signin-remove-passkey",
        ),
        path("admin/login/", second.lead_to_login),
    ]
