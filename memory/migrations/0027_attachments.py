import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import memory.integrity.signatures


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0026_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="attachments",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("kind", models.CharField(blank=True, max_length=20)),
                ("size", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("tokens", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uploads",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"default_permissions": ()},
        ),
        # Nothing of this is in the database, where it would copy the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="message",
                    name="signature",
                    field=memory.integrity.signatures.SignatureField(
                        later=("reasoning", "sent_text", "late_for", "attachments"),
                        of=(
                            "conversation_id",
                            "seq",
                            "role",
                            "text",
                            "tool_calls",
                            "tool_call_id",
                            "deleted_at",
                            "created_at",
                        ),
                    ),
                ),
            ],
        ),
    ]
