import uuid

from django.conf import settings
from django.db import migrations, models


def delete_uploads(apps, schema_editor):
    """Without the app nothing deletes its rows with the person that they are of."""
    rows = apps.get_model("attachments", "Upload").objects
    rows.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):
    # The table is there: memory 0027 has made it.
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0031_move_uploads"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                        (
                            "size",
                            models.PositiveIntegerField(),
                        ),
                        ("text", models.TextField()),
                        (
                            "tokens",
                            models.PositiveIntegerField(),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(auto_now_add=True, db_index=True),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=models.CASCADE,
                                related_name="uploads",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "db_table": "memory_upload",
                        "verbose_name": "upload",
                        "verbose_name_plural": "uploads",
                        "default_permissions": (),
                    },
                ),
            ],
        ),
        migrations.RunPython(migrations.RunPython.noop, delete_uploads),
    ]
