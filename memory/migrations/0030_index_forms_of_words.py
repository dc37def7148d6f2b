"""Index every message again: the index says which passages ask, which days are named,
and knows words by their other forms.

In batches, each a transaction of its own: the site can write in between. An interrupted
run begins at the first row again, and writes the same.
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
            for row in batch:
                for name, value in recall.describe_entry(row.message).items():
                    setattr(row, name, value)
            entry.objects.bulk_update(batch, CHANGED)
        if len(batch) < BATCH:
            return
        last = batch[-1].pk


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('memory', '0029_actions_of_changes'),
    ]

    operations = [
        migrations.RunPython(index_again, migrations.RunPython.noop, elidable=True),
    ]
