from django.db import migrations, models
from django.db.models.functions import Now


def take_over(apps, schema_editor):
    """The table was one of the app `chat`: what was logged of its rows stays theirs."""
    _rename_content_type(apps, schema_editor, "chat", "sharing")


def give_back(apps, schema_editor):
    """Without the app nothing deletes its rows with their conversation."""
    rows = apps.get_model("sharing", "Share").objects
    rows.using(schema_editor.connection.alias).all().delete()
    _rename_content_type(apps, schema_editor, "sharing", "chat")


def _rename_content_type(apps, schema_editor, old, new):
    manager = apps.get_model("contenttypes", "ContentType").objects
    rows = manager.using(schema_editor.connection.alias).filter(model="share")
    if not rows.filter(app_label=new).exists():
        rows.filter(app_label=old).update(app_label=new)


class Migration(migrations.Migration):
    # The table is there: chat 0020 has made it.
    dependencies = [
        ("chat", "0026_move_share"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memory", "0024_title_set_by_no_one"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Share",
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
                        (
                            "token",
                            models.CharField(
                                editable=False, max_length=32, unique=True
                            ),
                        ),
                        ("last_seq", models.PositiveIntegerField()),
                        (
                            "with_view",
                            models.BooleanField(
                                default=False, verbose_name="with what the model saw"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=Now(), verbose_name="created at"
                            ),
                        ),
                        (
                            "expires_at",
                            models.DateTimeField(verbose_name="expires at"),
                        ),
                        (
                            "revoked_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="revoked at"
                            ),
                        ),
                        (
                            "opens",
                            models.PositiveIntegerField(
                                default=0, verbose_name="opens"
                            ),
                        ),
                        (
                            "last_opened_at",
                            models.DateTimeField(
                                blank=True, null=True, verbose_name="last opened at"
                            ),
                        ),
                        (
                            "conversation",
                            models.ForeignKey(
                                on_delete=models.CASCADE,
                                related_name="shares",
                                to="memory.conversation",
                                verbose_name="conversation",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "chat_share",
                        "verbose_name": "share link",
                        "verbose_name_plural": "share links",
                        "default_permissions": (),
                    },
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
    ]
