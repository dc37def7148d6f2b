"""The built-in tools, as the registry lists them."""

from django.utils.translation import gettext_lazy as _

from ..context import BUILT_IN, SiteTool
from .arithmetic import calculate
from .clock import current_time, look_for_reminder, remind_me
from .own_words import search_own_words
from .transcript import read_messages, search_transcript

TOOLS = (
    SiteTool(
        search_transcript,
        _("Search the whole conversation"),
        read_only=True,
        source=BUILT_IN,
    ),
    SiteTool(
        read_messages, _("Read earlier messages"), read_only=True, source=BUILT_IN
    ),
    SiteTool(
        search_own_words,
        _("Search what you said in other conversations"),
        read_only=True,
        source=BUILT_IN,
    ),
    SiteTool(current_time, _("Tell the time"), read_only=True, source=BUILT_IN),
    SiteTool(calculate, _("Calculate"), read_only=True, source=BUILT_IN),
    SiteTool(
        remind_me,
        _("Set a reminder"),
        idempotent=True,
        source=BUILT_IN,
        look=look_for_reminder,
        reminds_of="text",
    ),
)
