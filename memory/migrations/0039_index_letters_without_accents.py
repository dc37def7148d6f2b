"""Index every message again: the index knows words without accents, in one form of
their letters, and by better stems.

In batches, each a transaction of its own: the site can write in between. An interrupted
run begins at the first row again; only what has changed is written.
"""

from django.db import migrations, transaction

BATCH = 500
CHANGED = ["terms", "dates", "passages"]


def index_again(apps, schema_editor):
    from memory.search import recall

    entry = apps.get_model("memory", "RecallEntry")
    rows = entry.objects.order_by("pk").select_related("message")
    last = 0
    while True:
        with transaction.atomic(schema_editor.connection.alias):
            batch = [*rows.filter(pk__gt=last).select_for_update(of=("self",))[:BATCH]]
            changed = []
            for row in batch:
                made = recall.describe_entry(row.message)
                if any(getattr(row, name) != made[name] for name in CHANGED):
                    for name in CHANGED:
                        setattr(row, name, made[name])
                    changed.append(row)
            entry.objects.bulk_update(changed, CHANGED)
        if len(batch) < BATCH:
            return
        last = batch[-1].pk


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('memory', '0038_title_seqs'),
    ]

    operations = [
        migrations.RunPython(index_again, migrations.RunPython.noop, elidable=True),
    ]
