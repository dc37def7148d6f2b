"""Trials over messages that were deleted for good lose what they wrote about them."""

from django.db import migrations

from ..experiments.steps import without_words


def blank(apps, schema_editor):
    messages = apps.get_model("memory", "Message").objects
    trials = apps.get_model("desk", "Trial").objects.exclude(result=None)
    for trial in trials.iterator(chunk_size=20):
        deleted = messages.filter(
            conversation=trial.conversation_id,
            deleted_at__gt=trial.created_at,
            seq__lte=trial.last_seq,
        )
        seqs = list(deleted.values_list("seq", flat=True))
        for seq in seqs:
            trial.result = without_words(trial.result, seq)
        if seqs:
            trial.save(update_fields=["result"])


class Migration(migrations.Migration):

    dependencies = [
        ('desk', '0002_carry_permissions'),
        ('memory', '0011_erased_summaries'),
    ]

    operations = [migrations.RunPython(blank, migrations.RunPython.noop)]
