"""As it was called before chatsite.features.tools.context."""

from chatsite.features.tools.context import *  # noqa: F403
