import memory.integrity.signatures
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0011_erased_summaries'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='reasoning',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        # Nothing of this is in the database, where it would copy the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='message',
                    name='seal',
                    field=memory.integrity.signatures.SignatureField(later=('reasoning',), of=('conversation_id', 'seq', 'role', 'text', 'tool_calls', 'tool_call_id', 'deleted_at', 'created_at')),
                ),
            ],
        ),
    ]
