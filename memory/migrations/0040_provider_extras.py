import memory.integrity.signatures
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0039_index_letters_without_accents'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='extras',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.AlterField(
            model_name='message',
            name='signature',
            field=memory.integrity.signatures.SignatureField(later=('reasoning', 'sent_text', 'late_for', 'attachments', 'extras'), of=('conversation_id', 'seq', 'role', 'text', 'tool_calls', 'tool_call_id', 'deleted_at', 'created_at')),
        ),
    ]
