"""The settings of the site without the apps that WITHOUT names."""

import os

from chatsite.settings import *  # noqa: F403
from chatsite.settings import INSTALLED_APPS, MIDDLEWARE, OPTIONAL_APPS

TAKEN_OUT = os.environ["WITHOUT"].split(",")
# They bring something to another app.
if "chatsite.features.code_blocks" in TAKEN_OUT:
    TAKEN_OUT += ["chatsite.contrib.diagrams"]
if "chatsite.features.importing" in TAKEN_OUT:
    TAKEN_OUT += ["chatsite.contrib.archives"]
if "chatsite.features.sharing" in TAKEN_OUT:
    TAKEN_OUT += ["chatsite.contrib.quiz"]
OPTIONAL_APPS = [name for name in OPTIONAL_APPS if name not in TAKEN_OUT]
INSTALLED_APPS = [name for name in INSTALLED_APPS if name not in TAKEN_OUT]
MIDDLEWARE = [name for name in MIDDLEWARE if not name.startswith(tuple(TAKEN_OUT))]
