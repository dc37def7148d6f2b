"""Summaries that cover a message deleted for good lose their words: now, and those of
messages that were deleted before.
"""

from django.db import migrations, models
from django.db.models import Exists, OuterRef

from memory.integrity import signatures

# As in memory.transcript.
TITLE_TURNS = 4


def blank_summaries(apps, schema_editor):
    deleted = apps.get_model("memory", "Message").objects.filter(
        conversation=OuterRef("conversation"),
        deleted_at__gt=OuterRef("created_at"),
        seq__gte=OuterRef("first_seq"),
        seq__lte=OuterRef("last_seq"),
    )
    rows = apps.get_model("memory", "Summary").objects
    for row in rows.filter(Exists(deleted), status="stale").iterator(chunk_size=100):
        row.text, row.structured, row.flags, row.status = "", None, {}, "erased"
        signatures.make_all(row)
        row.save()


def blank_titles(apps, schema_editor):
    messages = apps.get_model("memory", "Message").objects
    deleted = messages.filter(conversation=OuterRef("pk"), deleted_at__isnull=False)
    rows = apps.get_model("memory", "Conversation").objects
    for pk in rows.filter(Exists(deleted), title_set_by="auto").values_list("pk"):
        own = messages.filter(conversation=pk).order_by("seq")
        first = own.exclude(deleted_at=None).values_list("seq", flat=True).first()
        users = own.filter(role="user").values_list("seq", flat=True)
        later = users[TITLE_TURNS:].first()
        if later is None or first < later:
            rows.filter(pk__in=pk).update(title="", title_set_by="")



class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0010_staged_by'),
    ]

    operations = [
        migrations.AlterField(
            model_name='conversation',
            name='title_set_by',
            field=models.CharField(blank=True, choices=[('', 'nobody'), ('auto', 'the site'), ('user', 'a person'), ('copy', 'the conversation or file it was copied from')], default='', max_length=4),
        ),
        migrations.AlterField(
            model_name='summary',
            name='status',
            field=models.CharField(choices=[('active', 'current'), ('superseded', 'replaced'), ('stale', 'out of date'), ('erased', 'erased'), ('failed', 'failed'), ('rejected', 'rejected')], max_length=10),
        ),
        migrations.RunPython(blank_summaries, migrations.RunPython.noop),
        migrations.RunPython(blank_titles, migrations.RunPython.noop),
    ]
