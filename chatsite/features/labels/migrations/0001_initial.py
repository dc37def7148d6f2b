from django.conf import settings
from django.db import migrations, models


def take_over(apps, schema_editor):
    """The table was one of the app `memory`: what was logged of its rows stays theirs."""
    _rename_content_type(apps, schema_editor, "memory", "labels")


def give_back(apps, schema_editor):
    """Without the app nothing deletes its rows with their person or conversation."""
    rows = apps.get_model("labels", "Label").objects
    rows.using(schema_editor.connection.alias).all().delete()
    _rename_content_type(apps, schema_editor, "labels", "memory")


def _rename_content_type(apps, schema_editor, old, new):
    manager = apps.get_model("contenttypes", "ContentType").objects
    rows = manager.using(schema_editor.connection.alias).filter(model="label")
    if not rows.filter(app_label=new).exists():
        rows.filter(app_label=old).update(app_label=new)


class Migration(migrations.Migration):
    # The tables are there: memory 0026 has made them.
    dependencies = [
        ("memory", "0032_move_labels"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Label",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("name", models.CharField(max_length=40)),
                        ("key", models.CharField(editable=False, max_length=120)),
                        (
                            "conversations",
                            models.ManyToManyField(
                                blank=True,
                                related_name="labels",
                                to="memory.conversation",
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=models.CASCADE,
                                related_name="labels",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "db_table": "memory_label",
                        "ordering": ["key"],
                        "default_permissions": (),
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("owner", "key"), name="label_name_unique"
                            )
                        ],
                    },
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
    ]
