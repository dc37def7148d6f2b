"""Seals in every row of history, and the columns that staff look for in a list of
summaries, with an index for each. The seals of old rows vouch for them from now on.
"""

import django.db.models.fields.json
import memory.integrity.signatures
import memory.sql
from django.conf import settings
from django.db import migrations, models


from memory.integrity import signatures
from memory.engine.exceptions import PolicyError
from memory.engine.policy import PRESETS, Policy


def name_presets(apps, schema_editor):
    """Of the summaries that were made by the policy their conversation still has, or
    by a preset as it is."""
    rows = apps.get_model("memory", "Summary").objects
    for preset in PRESETS:
        digest = Policy(preset=preset).digest()
        rows.filter(preset="", policy_hash=digest).update(preset=preset)
    conversations = apps.get_model("memory", "Conversation").objects
    for pk, value in conversations.values_list("pk", "policy").iterator():
        try:
            policy = Policy.load(value)
        except PolicyError:
            continue
        made = rows.filter(conversation=pk, preset="", policy_hash=policy.digest())
        made.update(preset=policy.preset)


def sign_all(apps, schema_editor):
    for name in ("Message", "Summary", "ModelCall"):
        signatures.sign_all(apps.get_model("memory", name))


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0006_permissions'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='summary',
            name='memory_summ_created_4102f2_idx',
        ),
        migrations.AddField(
            model_name='message',
            name='seal',
            field=memory.integrity.signatures.SignatureField(of=('conversation_id', 'seq', 'role', 'text', 'tool_calls', 'tool_call_id', 'deleted_at', 'created_at')),
        ),
        migrations.AddField(
            model_name='modelcall',
            name='seal',
            field=memory.integrity.signatures.SignatureField(of=('conversation_id', 'purpose', 'refs', 'sha256', 'model', 'tokens_estimated', 'created_at')),
        ),
        migrations.AddField(
            model_name='summary',
            name='preset',
            field=models.CharField(blank=True, max_length=40),
        ),
        migrations.AddField(
            model_name='summary',
            name='seal',
            field=memory.integrity.signatures.SignatureField(of=('conversation_id', 'version', 'level', 'generation', 'first_seq', 'last_seq', 'text', 'structured', 'flags', 'trigger', 'policy_hash', 'prompt_hash', 'model', 'error', 'created_at')),
        ),
        migrations.AddField(
            model_name='summary',
            name='status_seal',
            field=memory.integrity.signatures.SignatureField(of=('seal', 'status'), renews=True),
        ),
        migrations.AddField(
            model_name='summary',
            name='trigger_kind',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('kind', 'trigger'), output_field=models.TextField(null=True)),
        ),
        migrations.AddField(
            model_name='summary',
            name='unsupported',
            field=models.GeneratedField(db_persist=True, expression=memory.sql.ListLength('flags', key='unsupported'), output_field=models.IntegerField(null=True)),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['-created_at', '-id'], name='summary_newest'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['status', '-created_at', '-id'], name='summary_by_status'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['trigger_kind', '-created_at', '-id'], name='summary_by_trigger'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['level', '-created_at', '-id'], name='summary_by_level'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(fields=['preset', '-created_at', '-id'], name='summary_by_preset'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(condition=models.Q(('unsupported__isnull', False)), fields=['-created_at', '-id'], name='summary_unsupported'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(condition=models.Q(('generation__gt', 1)), fields=['-created_at', '-id'], name='summary_rewritten'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(condition=models.Q(('level__gte', 4)), fields=['-created_at', '-id'], name='summary_high_level'),
        ),
        migrations.AddIndex(
            model_name='summary',
            index=models.Index(condition=models.Q(('status', 'active')), fields=['conversation', 'first_seq', 'last_seq'], name='summary_in_force'),
        ),
        migrations.RunPython(name_presets, migrations.RunPython.noop),
        migrations.RunPython(sign_all, migrations.RunPython.noop),
    ]
