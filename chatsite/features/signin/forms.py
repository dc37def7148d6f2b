"""Forms of links by e-mail, and of the address that they are sent to."""

from django import forms
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.forms import PasswordForm


def make_email_field(**options: object) -> forms.EmailField:
    widget = forms.EmailInput(attrs={"autocomplete": "email"})
    return forms.EmailField(label=_("E-mail address"), widget=widget, **options)


class ForgottenForm(forms.Form):
    email = make_email_field()


class EmailForm(PasswordForm):
    """A stolen session must not lead the next link to a new password elsewhere."""

    email = make_email_field(required=False)
    field_order = ("email", "password")
