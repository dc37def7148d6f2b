import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MODELS = ("toolcall", "resultfile")


def take_over(apps, schema_editor):
    """The tables were of the app `chat`: what was logged of their rows stays theirs."""
    _rename_content_types(apps, schema_editor, "chat", "tools")


def give_back(apps, schema_editor):
    """Without the app nothing deletes its rows with the messages that they are of."""
    for model in MODELS:
        rows = apps.get_model("tools", model).objects
        rows.using(schema_editor.connection.alias).all().delete()
    _rename_content_types(apps, schema_editor, "tools", "chat")


def _rename_content_types(apps, schema_editor, old, new):
    manager = apps.get_model("contenttypes", "ContentType").objects
    for model in MODELS:
        rows = manager.using(schema_editor.connection.alias).filter(model=model)
        if not rows.filter(app_label=new).exists():
            rows.filter(app_label=old).update(app_label=new)


class Migration(migrations.Migration):
    # The tables are there: chat 0012 and 0022 have made them.
    dependencies = [
        ("chat", "0027_move_tools"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memory", "0028_change"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='ResultFile',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('place', models.PositiveSmallIntegerField()),
                        ('name', models.CharField(blank=True, max_length=200)),
                        ('title', models.CharField(blank=True, max_length=200)),
                        ('kind', models.CharField(blank=True, max_length=130)),
                        ('url', models.TextField(blank=True)),
                        ('size', models.PositiveBigIntegerField(blank=True, null=True)),
                        ('data', models.BinaryField(blank=True, null=True)),
                        ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='result_files', to='memory.conversation')),
                        ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='result_files', to='memory.message')),
                    ],
                    options={
                        'db_table': 'chat_resultfile',
                        'default_permissions': (),
                        'constraints': [models.UniqueConstraint(fields=('message', 'place'), name='result_file_place')],
                    },
                ),
                migrations.CreateModel(
                    name='ToolCall',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('place', models.PositiveSmallIntegerField()),
                        ('call_id', models.CharField(max_length=100)),
                        ('name', models.CharField(max_length=100)),
                        ('arguments', models.JSONField(default=dict)),
                        ('digest', models.CharField(max_length=64)),
                        ('state', models.CharField(choices=[('asked', 'Asked'), ('waiting', 'Waiting for consent'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('late', 'Late'), ('cancelled', 'Cancelled'), ('unknown', 'Unknown')], default='asked', max_length=9)),
                        ('owner', models.CharField(blank=True, max_length=36)),
                        ('idempotency_key', models.UUIDField(default=uuid.uuid4, editable=False)),
                        ('handle', models.JSONField(blank=True, null=True)),
                        ('deadline_at', models.DateTimeField(blank=True, null=True)),
                        ('next_look_at', models.DateTimeField(blank=True, null=True)),
                        ('expires_at', models.DateTimeField(blank=True, null=True)),
                        ('tool_digest', models.CharField(blank=True, db_default='', max_length=64)),
                        ('answered_at', models.DateTimeField(blank=True, null=True)),
                        ('allowed', models.BooleanField(blank=True, null=True)),
                        ('reason', models.TextField(blank=True)),
                        ('error', models.CharField(blank=True, max_length=40)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('started_at', models.DateTimeField(blank=True, null=True)),
                        ('finished_at', models.DateTimeField(blank=True, null=True)),
                        ('is_unread', models.BooleanField(db_default=False, default=False)),
                        ('answered_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='tool_calls_answered', to=settings.AUTH_USER_MODEL)),
                        ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tool_calls', to='memory.conversation')),
                        ('late_result', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='late_call', to='memory.message')),
                        ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='calls_asked', to='memory.message')),
                        ('result', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='call_answered', to='memory.message')),
                        ('turn', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tool_calls', to='chat.turn')),
                    ],
                    options={
                        'db_table': 'chat_toolcall',
                        'ordering': ['id'],
                        'default_permissions': (),
                        'indexes': [models.Index(condition=models.Q(('next_look_at__isnull', False)), fields=['next_look_at'], name='tool_call_due'), models.Index(condition=models.Q(('state', 'waiting')), fields=['expires_at'], name='tool_call_waiting'), models.Index(condition=models.Q(('is_unread', True)), fields=['conversation'], name='tool_call_unread')],
                        'constraints': [models.UniqueConstraint(fields=('request', 'call_id', 'place'), name='tool_call_unique')],
                    },
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
    ]
