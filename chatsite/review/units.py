"""What policies count in, in words."""

from django.utils.translation import gettext_lazy

KINDS = {
    "tokens": gettext_lazy("tokens"),
    "messages": gettext_lazy("messages"),
    "turns": gettext_lazy("turns"),
    "fraction": gettext_lazy("of the model's window, 0 to 1"),
    "age": gettext_lazy("seconds since its oldest message"),
    "idle": gettext_lazy("seconds of silence"),
}
