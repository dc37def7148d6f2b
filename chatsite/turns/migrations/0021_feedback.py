import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0020_share"),
        ("memory", "0024_title_set_by_no_one"),
    ]

    operations = [
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
                ("comment", models.TextField(blank=True, verbose_name="comment")),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="created"),
                ),
                (
                    "updated_at",
                    models.DateTimeField(auto_now=True, verbose_name="when"),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feedback",
                        to="memory.conversation",
                    ),
                ),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feedback",
                        to="memory.message",
                        verbose_name="reply",
                    ),
                ),
            ],
            options={
                "verbose_name": "feedback",
                "verbose_name_plural": "feedback",
                "ordering": ["-updated_at", "-id"],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        fields=["-updated_at", "-id"], name="feedback_newest"
                    ),
                    models.Index(
                        fields=["verdict", "-updated_at", "-id"],
                        name="feedback_by_verdict",
                    ),
                    models.Index(
                        condition=models.Q(("comment", ""), _negated=True),
                        fields=["-updated_at", "-id"],
                        name="feedback_with_comment",
                    ),
                ],
            },
        ),
    ]
