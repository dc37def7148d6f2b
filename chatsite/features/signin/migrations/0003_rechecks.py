
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('signin', '0002_memberships'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='membership',
            name='recheck_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='membership',
            name='refresh_token',
            field=models.TextField(db_default='', editable=False),
        ),
        migrations.AddIndex(
            model_name='membership',
            index=models.Index(condition=models.Q(('recheck_at__isnull', False)), fields=['recheck_at'], name='membership_recheck'),
        ),
    ]
