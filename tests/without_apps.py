"""The settings of the site without the apps that WITHOUT names."""

import os

from chatsite.settings import *  # noqa: F403
from chatsite.settings import INSTALLED_APPS, OPTIONAL_APPS

TAKEN_OUT = os.environ["WITHOUT"].split(",")
OPTIONAL_APPS = [name for name in OPTIONAL_APPS if name not in TAKEN_OUT]
INSTALLED_APPS = [name for name in INSTALLED_APPS if name not in TAKEN_OUT]
