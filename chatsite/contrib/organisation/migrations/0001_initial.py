"""The table of memberships, which older sites have from the app of links."""

import django.db.models.deletion
from django.apps import apps
from django.conf import settings
from django.db import migrations, models


class CreateMissingModel(migrations.CreateModel):
    """Creation of a table that may exist already.

    The app that has created it also removes it.
    """

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        table = self.options['db_table']
        if table not in schema_editor.connection.introspection.table_names():
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        pass


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    if apps.is_installed('chatsite.features.signin'):
        dependencies.append(('signin', '0004_memberships_move'))

    operations = [
        CreateMissingModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(editable=False, max_length=40)),
                ('gave_staff', models.BooleanField(default=False, editable=False)),
                ('left_at', models.DateTimeField(editable=False, null=True)),
                ('refresh_token', models.TextField(db_default='', editable=False)),
                ('recheck_at', models.DateTimeField(editable=False, null=True)),
                ('user', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'signin_membership',
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('recheck_at__isnull', False)), fields=['recheck_at'], name='membership_recheck')],
                'constraints': [models.UniqueConstraint(fields=('user', 'provider'), name='one_membership')],
            },
        ),
    ]
