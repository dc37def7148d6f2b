"""Contributions of optional apps to the core, and to each other, in their ready():
found in a process of its own, which prints them.
"""

import importlib
import json
import pkgutil
import sys
from collections.abc import Mapping

import django
from django.apps import AppConfig, apps
from django.conf import settings
from django.dispatch import Signal

import chatsite
import memory

# They put the site together, or are run and not imported.
NOT_CORE = ("settings", "asgi", "urls", "migrations", "management", "agents")


def show():
    """Prints the names of all values of modules that an app fills or sets."""
    ready = dict(map(hold_ready, settings.OPTIONAL_APPS))
    django.setup()
    for package in (chatsite, memory):
        import_core(package)
    filled = {}
    for config in apps.get_app_configs():
        if config.name in ready:
            before = weigh()
            ready[config.name](config)
            after = weigh()
            # What a module has that was not there before is its own.
            changed = [n for n in after if after[n] != before.get(n, after[n])]
            others = (n for n in changed if not n.startswith(f"{config.name}."))
            filled |= {after[name][0]: name for name in others}
    print(json.dumps(sorted(filled.values())))  # noqa: T201


def hold_ready(app):
    """Return the name of the app and its ready(), which is not called yet."""
    found = vars(importlib.import_module(f"{app}.apps")).values()
    classes = [each for each in found if isinstance(each, type)]
    [config] = [each for each in classes if each.__module__ == f"{app}.apps"]
    ready, config.ready = config.ready, AppConfig.ready
    return app, ready


def import_core(package):
    optional = tuple(f"{app}." for app in settings.OPTIONAL_APPS)
    for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        is_core = not f"{each.name}.".startswith(optional)
        if is_core and each.name.rpartition(".")[2] not in NOT_CORE:
            module = importlib.import_module(each.name)
            if each.ispkg:
                import_core(module)


def weigh():
    """Return the object of each name of a module, and its size.

    Signals of Django are no seams of this site.
    """
    return {
        f"{module}.{name}": (id(value), measure(value))
        for module, loaded in [*sys.modules.items()]
        if module.startswith(("chatsite.", "memory."))
        for name, value in [*vars(loaded).items()]
        if not (name.startswith("__") or isinstance(value, type(sys)))
        if not (isinstance(value, Signal) and is_of_django(value))
    }


def is_of_django(signal):
    modules = [each for n, each in [*sys.modules.items()] if n.startswith("django.")]
    return any(signal is each for found in modules for each in vars(found).values())


def measure(value):
    if isinstance(value, Signal):
        return len(value.receivers)
    if isinstance(value, Mapping):
        return len(value) + sum(map(measure, [*value.values()]))
    return len(value) if isinstance(value, list | set) else 0
