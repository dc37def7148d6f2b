"""Index what was indexed as whole messages by its passages.

In batches, each a transaction of its own: after an interruption the next run goes on
where this one ended, and the site can write in between.
"""

from django.db import migrations, transaction

BATCH = 500
CHANGED = ["terms", "dates", "passages"]


def index_passages(apps, schema_editor):
    from memory.search import recall

    entry = apps.get_model("memory", "RecallEntry")
    rows = entry.objects.filter(passages=None).order_by("pk").select_related("message")
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
        ('memory', '0018_recall_passages'),
    ]

    operations = [
        migrations.RunPython(index_passages, migrations.RunPython.noop, elidable=True),
    ]
