#!/usr/bin/env python
"""Django's command line for this project."""

import sys

from django.core.management import execute_from_command_line

from chatsite.environment import load_settings

if __name__ == "__main__":
    load_settings()
    execute_from_command_line(sys.argv)
