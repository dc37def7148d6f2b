"""The former name of chatsite.features.tools.context."""

from chatsite.features.tools.context import *  # noqa: F403
