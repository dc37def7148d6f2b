from django.db import migrations, models

NEWEST = ["-updated_at", "-id"]


def take_over(apps, schema_editor):
    """The table was one of the app `chat`: what was logged of its rows stays theirs."""
    _rename_content_type(apps, schema_editor, "chat", "feedback")


def give_back(apps, schema_editor):
    """Without the app nothing deletes its rows with the messages that they are of."""
    rows = apps.get_model("feedback", "Feedback").objects
    rows.using(schema_editor.connection.alias).all().delete()
    _rename_content_type(apps, schema_editor, "feedback", "chat")


def _rename_content_type(apps, schema_editor, old, new):
    manager = apps.get_model("contenttypes", "ContentType").objects
    rows = manager.using(schema_editor.connection.alias).filter(model="feedback")
    if not rows.filter(app_label=new).exists():
        rows.filter(app_label=old).update(app_label=new)


class Migration(migrations.Migration):
    # The table is there: chat 0021 has made it.
    dependencies = [
        ("chat", "0024_move_feedback"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memory", "0024_title_set_by_no_one"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Feedback",
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
                            "verdict",
                            models.CharField(
                                choices=[("good", "Good"), ("bad", "Bad")],
                                max_length=4,
                                verbose_name="verdict",
                            ),
                        ),
                        (
                            "comment",
                            models.TextField(blank=True, verbose_name="comment"),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(
                                auto_now_add=True, verbose_name="created"
                            ),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(auto_now=True, verbose_name="when"),
                        ),
                        (
                            "conversation",
                            models.ForeignKey(
                                on_delete=models.CASCADE,
                                related_name="feedback",
                                to="memory.conversation",
                            ),
                        ),
                        (
                            "message",
                            models.OneToOneField(
                                on_delete=models.CASCADE,
                                related_name="feedback",
                                to="memory.message",
                                verbose_name="reply",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "chat_feedback",
                        "verbose_name": "feedback",
                        "verbose_name_plural": "feedback",
                        "ordering": NEWEST,
                        "default_permissions": (),
                        "indexes": [
                            models.Index(fields=NEWEST, name="feedback_newest"),
                            models.Index(
                                fields=["verdict", *NEWEST],
                                name="feedback_by_verdict",
                            ),
                            models.Index(
                                condition=models.Q(("comment", ""), _negated=True),
                                fields=NEWEST,
                                name="feedback_with_comment",
                            ),
                        ],
                    },
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
    ]
