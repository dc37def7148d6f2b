"""Index again what is behind the first stretch of a long conversation, for PostgreSQL,
which finds the newest messages of a common word by the stretches that they are in.

In batches, each a transaction of its own: the site can write in between. An interrupted
run goes on where it ended.
"""

from django.db import migrations, transaction

BATCH = 500


def index_stretches(apps, schema_editor):
    from memory.search import recall

    if schema_editor.connection.vendor != "postgresql":
        return
    entry = apps.get_model("memory", "RecallEntry")
    rows = entry.objects.filter(seq__gte=recall.STRETCHES[0]).order_by("pk")
    rows = rows.exclude(dates__contains="|").select_related("message")
    last = 0
    while True:
        with transaction.atomic(schema_editor.connection.alias):
            batch = [*rows.filter(pk__gt=last).select_for_update(of=("self",))[:BATCH]]
            for row in batch:
                row.dates = recall.describe_entry(row.message)["dates"]
            entry.objects.bulk_update(batch, ["dates"])
        if len(batch) < BATCH:
            return
        last = batch[-1].pk


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('memory', '0033_move_rules'),
    ]

    operations = [
        migrations.RunPython(
            index_stretches, migrations.RunPython.noop, elidable=True
        ),
    ]
