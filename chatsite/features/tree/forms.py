"""The forms of branches."""

from django import forms


class EditForm(forms.Form):
    """A message in other words. What is wrong with these, the services say."""

    seq = forms.IntegerField(min_value=1, max_value=2**31 - 1)


class OpenForm(forms.Form):
    """The branch that the page shows."""

    open = forms.UUIDField()
