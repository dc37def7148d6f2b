"""The settings of the site without the leaf app that WITHOUT_LEAF names."""

import os

from chatsite.settings import *  # noqa: F403
from chatsite.settings import INSTALLED_APPS, LEAVES

TAKEN_OUT = os.environ["WITHOUT_LEAF"]
LEAVES = [name for name in LEAVES if name != TAKEN_OUT]
INSTALLED_APPS = [name for name in INSTALLED_APPS if name != TAKEN_OUT]
