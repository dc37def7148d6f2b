"""Index every message again: the index knows more ways to name a day."""

from importlib import import_module

from django.db import migrations

before = import_module("memory.migrations.0039_index_letters_without_accents")


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('memory', '0044_title_source_label'),
    ]

    operations = [
        migrations.RunPython(
            before.index_again, migrations.RunPython.noop, elidable=True
        ),
    ]
