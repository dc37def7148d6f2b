"""The form that selects two requests, also by the address of the page."""

from django import forms
from django.utils.translation import gettext_lazy as _


class RepliesForm(forms.Form):
    """Two replies by their numbers.

    `reply` defaults to the newest reply, `with` to the reply before it.
    """

    reply = forms.IntegerField(
        label=_("Reply"), min_value=1, max_value=2**31 - 1, required=False
    )


# `with` is a keyword of Python, so it cannot be a class attribute.
RepliesForm.base_fields["with"] = forms.IntegerField(
    label=_("Compared with"), min_value=1, max_value=2**31 - 1, required=False
)
