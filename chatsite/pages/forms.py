"""Forms of the pages, which check their input before anything is stored."""

import json
import re
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, ClassVar

from django import forms
from django.forms import BoundField
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite import plugins
from chatsite.plugins import form_fields
from memory import transcript
from memory.engine import policy
from memory.engine.blank import is_blank
from memory.engine.exceptions import PolicyError
from memory.models import Conversation

TITLE_MAX = Conversation._meta.get_field("title").max_length
# What the triggers of policies count in.
UNITS = {
    "tokens": _("tokens"),
    "messages": _("messages"),
    "turns": _("turns"),
    "fraction": _("of the model's window, 0 to 1"),
    "age": _("seconds since its oldest message"),
    "idle": _("seconds of silence"),
    "topic": _("of a turn's words are new, 0 to 1"),
    "important": _("important messages"),
}
STRATEGIES = {
    "": _("As the preset says"),
    "layered": _("One summary per stretch, merged by level"),
    "running": _("One summary of everything"),
    "topics": _("One summary with a part per topic"),
    "window": _("No summary: they are no longer sent"),
}
SIZES = ("trigger", "keep")


def preset_choices() -> list[tuple[str, Any]]:
    return policy.list_presets(gettext)


def preset_name(preset: str) -> str:
    """Return the name of a preset: its label up to the colon or the brackets.

    Languages write these differently. An unknown preset is returned as it was stored.
    """
    named = policy.LABELS.get(preset)
    return re.split("[:：(（]", gettext(named))[0].strip() if named else preset


def name_error(label: object, why: str) -> str:
    """Return an error with the label of its field, to show it elsewhere."""
    return gettext("%(field)s: %(why)s") % {"field": label, "why": why}


class TitleField(forms.CharField):
    """A name that can be seen; one without a visible character is none."""

    def to_python(self, value: object) -> str:
        title = super().to_python(value)
        return "" if is_blank(title) else title


class MultilineField(forms.CharField):
    """A text as it was typed; browsers send every line break as two characters."""

    widget = forms.Textarea

    def to_python(self, value: object) -> str:
        return super().to_python(value).replace("\r\n", "\n")


class SystemPromptField(MultilineField):
    """The system prompt, with which every request begins; empty: the site's own."""

    def __init__(self) -> None:
        super().__init__(
            label=capfirst(_("system prompt")),
            required=False,
            max_length=transcript.SYSTEM_PROMPT_CHARS,
            help_text=_(
                "Sent with every message. Leave empty for the site's system prompt."
            ),
            widget=forms.Textarea(attrs={"rows": 4, "dir": "auto", "placeholder": " "}),
        )


class DetailedForm(forms.Form):
    """A form of which the page shows some fields only on demand."""

    DETAILS: ClassVar[tuple[str, ...]] = ()
    details_label: ClassVar[Any] = ""
    details_help: ClassVar[Any] = ""
    fields_template = "_detailed_form_fields.html"

    def field_rows(self) -> Iterator[tuple[BoundField, BoundField | None]]:
        """Yield the fields as the page shows them: a size with its unit."""
        for field in self.visible_fields():
            if not field.name.endswith("_kind"):
                kind = field.name.replace("_size", "_kind")
                yield field, self[kind] if kind != field.name else None

    @property
    def has_details(self) -> bool:
        """True if a detail was typed, or is wrong."""
        return any(self[name].value() or self[name].errors for name in self.DETAILS)


class TemperatureField(forms.FloatField):
    """The temperature of a conversation's replies; empty: the site's own."""

    def __init__(self) -> None:
        super().__init__(
            label=capfirst(_("temperature")),
            required=False,
            min_value=0,
            max_value=2,
            step_size=0.1,
            widget=forms.NumberInput(attrs={"placeholder": " "}),
            help_text=_("0–2. Higher is more creative. Leave empty for the default."),
        )


class NewConversationForm(forms.Form):
    """The first message of a conversation, and under *Options* what it begins with."""

    fields_template = "chat/_start_options.html"

    # A script may leave it out: then nothing is said yet.
    first = MultilineField(label=capfirst(_("message")), required=False, strip=False)
    client_id = forms.CharField(required=False)
    # Any that is offered; the page has a list of them where there are several.
    model = forms.CharField(required=False)
    title = TitleField(
        label=_("Title"),
        max_length=TITLE_MAX,
        required=False,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("Named after your first message"),
                "autocomplete": "off",
            }
        ),
    )
    preset = forms.ChoiceField(
        label=_("How it remembers"),
        choices=preset_choices,
        required=False,
        initial=policy.DEFAULT_PRESET,
    )
    temperature = TemperatureField()
    system_prompt = SystemPromptField()
    temporary = forms.BooleanField(label=_("Temporary conversation"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        text = gettext("Deleted %(minutes)s minutes after you close it.")
        minutes = transcript.TEMPORARY_MINUTES
        self.fields["temporary"].help_text = text % {"minutes": minutes}
        self.fields |= {name: make() for name, make in form_fields["start"].items()}

    def clean(self) -> dict[str, Any]:
        """Drop options that were not sent, as by a script: they stay as they are."""
        values = super().clean()
        unasked = form_fields["start"].keys() - self.data.keys()
        return {name: value for name, value in values.items() if name not in unasked}

    @property
    def options(self) -> list[BoundField]:
        names = ("preset", *form_fields["start"], "system_prompt")
        return [self[name] for name in names]

    @property
    def is_refused(self) -> bool:
        return any(field.errors for field in self.options)


class StorableDecoder(json.JSONDecoder):
    """A decoder that refuses what a database can't hold or a page can't show again."""

    # Policies have three levels.
    MAX_DEPTH = 20

    def decode(self, text: str) -> Any:
        try:
            found = super().decode(text)
            self._check(found)
        except (RecursionError, ValueError) as error:
            # Nested too deep, a number with thousands of digits, NUL, half a character.
            raise json.JSONDecodeError(str(error), text, 0) from error
        return found

    def _check(self, value: Any, depth: int = 0) -> None:
        if depth > self.MAX_DEPTH:
            raise ValueError("nested too deep")
        if isinstance(value, dict):
            value = [*value.keys(), *value.values()]
        if isinstance(value, list):
            for each in value:
                self._check(each, depth + 1)
        if isinstance(value, str):
            value.encode()
            if "\0" in value:
                raise ValueError("NUL")
        if isinstance(value, float) and not isfinite(value):
            raise ValueError("no number")


class StorableField(forms.JSONField):
    """JSON that both databases hold and that every page can show again."""

    def __init__(self, **options: Any) -> None:
        super().__init__(decoder=StorableDecoder, **options)


class OverridesField(StorableField):
    """Settings over a preset; empty where there are none, not the word null."""

    def __init__(self, **attrs: Any) -> None:
        placeholder = '{"trigger": ["tokens", 2000], "keep": ["turns", 3]}'
        attrs |= {"spellcheck": "false", "placeholder": placeholder}
        super().__init__(
            label=_("Override the preset (JSON)"),
            required=False,
            widget=forms.Textarea(attrs=attrs),
        )

    def prepare_value(self, value: object) -> object:
        return "" if value is None else super().prepare_value(value)


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, empty_value=None, **options)

    def to_python(self, value: object) -> list[str] | None:
        text = super().to_python(value) or ""
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()] or None

    def prepare_value(self, value: object) -> object:
        return "\n".join(value) if isinstance(value, list) else value


def _can_hold(field: forms.Field, value: object) -> bool:
    """Return if the field of a setting gives back the value that it is given."""
    # A line of a form has no line breaks.
    if isinstance(field.widget, forms.TextInput) and len(str(value).splitlines()) > 1:
        return False
    try:
        found = field.clean(field.prepare_value(value))
    except (forms.ValidationError, TypeError):
        return False
    return found == value and found not in ("", None)


def _unit_field(names: Iterable[str], label: Any) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        choices=lambda: [(name, UNITS[name]) for name in names],
        required=False,
        widget=forms.Select(attrs={"aria-label": label}),
    )


class PolicyForm(DetailedForm):
    """The memory policy of a conversation: a preset, and settings that override it.

    The most common settings have fields; an empty one leaves it to the preset.
    """

    # Settings with a field of the same name, beside the sizes.
    SETTINGS: ClassVar[tuple[str, ...]] = ("strategy", "important", "focus")
    DETAILS: ClassVar = ("trigger_size", "keep_size", *SETTINGS, "overrides")
    details_label = _("Override the preset")
    details_help = _("Empty fields follow the preset.")

    preset = forms.ChoiceField(label=_("How it remembers"), choices=preset_choices)
    trigger_size = forms.FloatField(label=_("Summarise at"), required=False)
    trigger_kind = _unit_field(policy.TRIGGER_KINDS, _("Summarise at, counted in"))
    keep_size = forms.FloatField(label=_("Keep"), required=False)
    keep_kind = _unit_field(policy.KEEP_KINDS, _("Keep, counted in"))
    strategy = forms.ChoiceField(
        label=_("What leaves the window"), choices=[*STRATEGIES.items()], required=False
    )
    important = LinesField(
        label=capfirst(_("important messages")),
        required=False,
        widget=forms.Textarea(
            attrs={
                "rows": 2,
                "cols": 70,
                "spellcheck": "false",
                "placeholder": _("(?i)remember|budget"),
            }
        ),
        help_text=_(
            "Regular expressions, one per line. What they match stays in full."
        ),
    )
    focus = forms.CharField(
        label=_("Summaries should keep"),
        required=False,
        max_length=policy.MAX_FOCUS_CHARS,
        help_text=_("In a sentence: “all names and prices, and who decided what”."),
    )
    no_compaction = forms.BooleanField(
        label=_("Do not summarise older messages"), required=False
    )
    no_recall = forms.BooleanField(
        label=_("Do not search earlier messages"), required=False
    )
    overrides = OverridesField(rows=3)

    # What was in force when the form was drawn.
    seen = StorableField(required=False, widget=forms.HiddenInput)

    field_order = (
        *("preset", "facts", "trigger_size", "trigger_kind", "keep_size", "keep_kind"),
        *("strategy", "important", "rules", "focus", "overrides"),
        *("no_compaction", "no_recall"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= {name: make() for name, make in form_fields["policy"].items()}
        # Facts are on by default, which overrides nothing.
        self.DETAILS = (*self.DETAILS, *(form_fields["policy"].keys() - {"facts"}))
        self.order_fields(self.field_order)

    @classmethod
    def for_conversation(
        cls, conversation: Conversation, *, preset: str = ""
    ) -> "PolicyForm":
        """Make a form of the conversation's settings, or of a `preset` instead."""
        stored = conversation.policy
        initial = (
            {"preset": preset, "seen": stored} if preset else cls.read_initial(stored)
        )
        return cls(initial=initial)

    @classmethod
    def read_initial(cls, stored: object) -> dict[str, Any]:
        """Return the fields' values for a stored policy.

        Settings that no field can hold are in `overrides`.
        """
        if not isinstance(stored, dict):
            return {"overrides": stored, "seen": stored}
        own = dict(stored)
        initial = {
            "seen": stored,
            "preset": own.pop("preset", policy.DEFAULT_PRESET),
            "no_compaction": own.pop("enabled", True) is False,
            "no_recall": own.get("recall_tokens") == 0,
        }
        if initial["no_recall"]:
            del own["recall_tokens"]
        for name in SIZES:
            match own.get(name):
                case [str(kind), int() | float() as size] if kind in UNITS:
                    initial |= {f"{name}_kind": kind, f"{name}_size": size}
                    del own[name]
        fields = {name: make() for name, make in form_fields["policy"].items()}
        fields |= {name: cls.base_fields[name] for name in cls.SETTINGS}
        for name in own.keys() & fields.keys():
            if _can_hold(fields[name], own[name]):
                initial[name] = own.pop(name)
        return {**initial, "overrides": own or None}

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, dict):
            raise forms.ValidationError(_("The settings must be a JSON object: {…}."))
        own = dict(self._own())
        if twice := sorted(own.keys() & overrides.keys()):
            names = {"names": ", ".join(twice)}
            text = _("Set twice, here and in a field of its own: %(names)s.")
            self.add_error("overrides", forms.ValidationError(text, params=names))
        if "preset" not in values or self.errors:
            return values
        overrides = {**overrides, **own}
        switched = {"enabled": False} if values["no_compaction"] else {}
        switched |= {"recall_tokens": 0} if values["no_recall"] else {}
        values["policy"] = {**overrides, **switched, "preset": values["preset"]}
        try:
            policy.Policy.load(values["policy"])
        except PolicyError as error:
            raise forms.ValidationError(error.render(gettext)) from error
        return values

    def _own(self) -> Iterator[tuple[str, Any]]:
        """Yield the settings that were given in a field of their own."""
        for name in SIZES:
            size = self.cleaned_data.get(f"{name}_size")
            if size is not None:
                kind = self.cleaned_data.get(f"{name}_kind")
                is_whole = kind not in policy.SHARES and size == int(size)
                yield name, [kind, int(size) if is_whole else size]
        for name in (*self.SETTINGS, *form_fields["policy"]):
            if self.cleaned_data.get(name) not in (None, ""):
                yield name, self.cleaned_data[name]

    @property
    def overriding(self) -> int:
        """Return how many stored settings override the preset's."""
        names = {*self.DETAILS, "no_compaction", "no_recall"} - {"overrides"}
        own = self.initial.get("overrides") or {}
        filled = sum(bool(self.initial.get(name)) for name in names)
        return filled + (len(own) if isinstance(own, dict) else 1)

    def seen_again(self, conversation: Conversation, why: str) -> "PolicyForm":
        """Return the form as it was filled in, with the reason why it was not saved.

        Sent once more, it replaces what is in force by now.
        """
        data = self.data.copy()
        data["seen"] = json.dumps(conversation.policy)
        form = type(self)(data)
        preset = preset_name(conversation.get_policy().preset)
        now = _("They are now “%(preset)s”. Apply again to overwrite them.")
        form.add_error(None, f"{why} {now % {'preset': preset}}")
        return form


class UndoPolicyForm(forms.Form):
    # An empty policy is one, too, so none of them can be called required.
    policy = StorableField(required=False)
    seen = StorableField(required=False)

    def clean_policy(self) -> dict[str, object]:
        if not isinstance(self.cleaned_data["policy"], dict):
            raise forms.ValidationError(_("The settings must be a JSON object: {…}."))
        return self.cleaned_data["policy"]


class RenameForm(forms.Form):
    title = TitleField(max_length=TITLE_MAX)


class SearchForm(forms.Form):
    q = forms.CharField(max_length=TITLE_MAX, required=False)


class ListForm(SearchForm):
    """The requested part of the list, and the conversation that is open beside it."""

    view = forms.ChoiceField(choices=[("archived", "archived")], required=False)
    open = forms.UUIDField(required=False)
    show = forms.IntegerField(min_value=1, max_value=2_000, required=False)
    # With boxes, to choose several.
    select = forms.BooleanField(required=False)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for each in plugins.sources[plugins.ListFilter].values():
            self.fields[each.name] = forms.IntegerField(
                min_value=1, max_value=2**31 - 1, required=False
            )


class BranchForm(forms.Form):
    seq = forms.IntegerField(min_value=1, max_value=2**31 - 1)


class NumberForm(forms.Form):
    """The numbers that addresses carry; what no row can have is refused."""

    reply = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    before = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    after = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    at = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
