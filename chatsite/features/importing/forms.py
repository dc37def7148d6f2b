"""The forms of the page that takes a file, or the memories of another chat."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.utils.translation import gettext_lazy as _

from .files.reading import SITES


class ImportForm(forms.Form):
    file = forms.FileField(
        label=_("File"), widget=forms.ClearableFileInput(attrs={"accept": ".json,.zip"})
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

    def get_file(self) -> UploadedFile:
        return self.cleaned_data["file"]


class MemoriesForm(forms.Form):
    """Memories that the user has copied from another chat."""

    site = forms.ChoiceField(
        label=_("From"), choices={name: SITES[name] for name in ("chatgpt", "claude")}
    )
    memories = forms.CharField(
        label=_("Memories"),
        help_text=_("One on each line. You decide which of them become facts."),
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto"}),
    )

    def get_file(self) -> UploadedFile:
        """Return the file that the other chat would have sent."""
        text = self.cleaned_data["memories"]
        is_claude = self.cleaned_data["site"] == "claude"
        own = {"memories": [{"content": text}]}
        value = {"conversations_memory": text} if is_claude else own
        return SimpleUploadedFile("memories.json", json.dumps(value).encode())
