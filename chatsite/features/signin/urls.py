"""The addresses of links by e-mail."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from . import views


class MailedTokenConverter(StringConverter):
    """The token of a link, as far as there can be one."""

    regex = "[A-Za-z0-9_-]{32}"


register_converter(MailedTokenConverter, "mailed_token")

urlpatterns = [
    path("accounts/forgotten/", views.ask_for_reset, name="signin-forgotten"),
    path("accounts/forgotten/sent/", views.show_sent, name="signin-sent"),
    path("accounts/link/<mailed_token:token>/", views.open_link, name="signin-link"),
    path("account/email/", views.change_email, name="signin-email"),
]
