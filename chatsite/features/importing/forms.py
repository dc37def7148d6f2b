"""The form of the page that takes a file."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class ImportForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        widget=forms.ClearableFileInput(attrs={"accept": ".json,.zip"}),
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        limit, field = settings.IMPORT_MAX_MB, self.fields["file"]
        field.help_text = _("At most %(limit)s MB.") % {"limit": limit}
        too_large = _("The file is larger than %(limit)s MB.") % {"limit": limit}
        field.widget.attrs |= {
            "data-max-bytes": limit * 1024 * 1024,
            "data-too-large": too_large,
        }
