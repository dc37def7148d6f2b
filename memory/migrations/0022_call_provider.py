import memory.integrity.signatures
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0021_rules'),
    ]

    operations = [
        migrations.AddField(
            model_name='modelcall',
            name='provider',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=100),
        ),
        # Nothing of this is in the database, where it would copy the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='modelcall',
                    name='signature',
                    field=memory.integrity.signatures.SignatureField(later=('provider',), of=('conversation_id', 'purpose', 'refs', 'sha256', 'model', 'tokens_estimated', 'created_at')),
                ),
            ],
        ),
    ]
