import memory.integrity.signatures
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0016_tools'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='answers_late',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='message',
            name='late_for',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        # Nothing of this is in the database, where it would copy the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='message',
                    name='signature',
                    field=memory.integrity.signatures.SignatureField(later=('reasoning', 'sent_text', 'late_for'), of=('conversation_id', 'seq', 'role', 'text', 'tool_calls', 'tool_call_id', 'deleted_at', 'created_at')),
                ),
            ],
        ),
    ]
