"""Move the table of experiments from the review app; only its app changes.

Its content type moves along, which keeps Django's own log entries on experiments.
Backwards, the rows are deleted: without the app nothing deletes them with their
conversations.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def move_content_type(apps, before, after):
    rows = apps.get_model("contenttypes", "ContentType").objects
    rows.filter(app_label=before, model="experiment").update(app_label=after)


def forwards(apps, schema_editor):
    move_content_type(apps, "desk", "experiments")


def backwards(apps, schema_editor):
    apps.get_model("experiments", "Experiment").objects.all().delete()
    move_content_type(apps, "experiments", "desk")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('desk', '0005_leaf_experiments'),
        ('contenttypes', '0002_remove_content_type_name'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Experiment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('policy', models.JSONField(default=dict, verbose_name='policy')),
                        ('model', models.CharField(max_length=100, verbose_name='summariser')),
                        ('budget', models.PositiveIntegerField(verbose_name='budget')),
                        ('spent', models.PositiveIntegerField(default=0, verbose_name='spent')),
                        ('requests', models.PositiveIntegerField(default=0, verbose_name='requests')),
                        ('tokens_in', models.PositiveIntegerField(default=0, verbose_name='read')),
                        ('tokens_out', models.PositiveIntegerField(default=0, verbose_name='written')),
                        ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped'), ('failed', 'Failed')], default='queued', max_length=7, verbose_name='state')),
                        ('attempt', models.PositiveSmallIntegerField(default=0)),
                        ('last_seq', models.PositiveIntegerField(verbose_name='last message')),
                        ('done_messages', models.PositiveIntegerField(default=0)),
                        ('all_messages', models.PositiveIntegerField(default=0)),
                        ('result', models.JSONField(blank=True, null=True, verbose_name='result')),
                        ('error', models.CharField(blank=True, max_length=100, verbose_name='error')),
                        ('owner', models.CharField(blank=True, max_length=36)),
                        ('place', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('lease_until', models.DateTimeField(blank=True, null=True)),
                        ('cancel_requested_at', models.DateTimeField(blank=True, null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True, db_index=True, verbose_name='created')),
                        ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished')),
                        ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='memory.conversation')),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='started by')),
                    ],
                    options={
                        'verbose_name': 'policy experiment',
                        'verbose_name_plural': 'policy experiments',
                        'db_table': 'desk_experiment',
                        'ordering': ['-id'],
                        'default_permissions': (),
                        'indexes': [models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['state', 'lease_until'], name='trial_unfinished')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('place',), name='one_trial_per_place')],
                    },
                ),
            ],
        ),
        migrations.RunPython(forwards, backwards),
    ]
