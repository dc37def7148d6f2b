"""The former name of chatsite.features.tools.registry."""

from chatsite.features.tools.context import *  # noqa: F403
