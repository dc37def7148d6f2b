"""Trials over messages that were deleted for good lose what they wrote about them."""

from django.db import migrations


def without_words(result, seq):
    """As it was when this migration was made."""
    done = result["steps"]
    versions = [
        {**each, "text": ""} if each["first_seq"] <= seq <= each["last_seq"] else each
        for each in done["versions"]
    ]
    sides = result.get("sides", {})
    return {
        **result,
        "steps": {**done, "versions": versions},
        "sides": {name: {**side, "lost": []} for name, side in sides.items()},
    }


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
