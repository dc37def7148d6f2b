"""As it was called before chatsite.features.tools.registry."""

from chatsite.features.tools.context import *  # noqa: F403
