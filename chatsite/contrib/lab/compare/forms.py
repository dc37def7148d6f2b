"""Which two requests are compared: the address of the page and its form."""

from django import forms
from django.utils.translation import gettext_lazy as _


class RepliesForm(forms.Form):
    """Two replies by their numbers. Without the first it is the newest, without the
    second the one before it."""

    reply = forms.IntegerField(
        label=_("Reply"), min_value=1, max_value=2**31 - 1, required=False
    )


# A name that Python keeps for itself.
RepliesForm.base_fields["with"] = forms.IntegerField(
    label=_("Compared with"), min_value=1, max_value=2**31 - 1, required=False
)
