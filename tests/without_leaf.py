"""The settings of the site without the leaf apps that WITHOUT_LEAF names."""

import os

from chatsite.settings import *  # noqa: F403
from chatsite.settings import INSTALLED_APPS, LEAVES

TAKEN_OUT = os.environ["WITHOUT_LEAF"].split(",")
LEAVES = [name for name in LEAVES if name not in TAKEN_OUT]
INSTALLED_APPS = [name for name in INSTALLED_APPS if name not in TAKEN_OUT]
