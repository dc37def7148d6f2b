"""The site's settings, and how it serves static files without DEBUG.

A browser may keep them for a minute then, and does not ask for each again.
"""

from chatsite.settings import *  # noqa: F403 - Django reads one module

WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 60
