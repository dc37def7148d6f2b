import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0020_result_summaries"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="rule_count",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="Rule",
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
                ("start", models.PositiveIntegerField(default=0)),
                ("end", models.PositiveIntegerField(default=0)),
                (
                    "text",
                    models.TextField(
                        blank=True
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("instruction", "Instruction"),
                            ("preference", "Preference"),
                            ("constraint", "Constraint"),
                        ],
                        max_length=11,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("offered", "Offered"),
                            ("kept", "Kept by itself"),
                            ("confirmed", "Confirmed"),
                            ("dismissed", "Dismissed"),
                            ("replaced", "Replaced"),
                        ],
                        max_length=9,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rules",
                        to="memory.conversation",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rules",
                        to="memory.message",
                    ),
                ),
                (
                    "replaced_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="replaces",
                        to="memory.rule",
                    ),
                ),
            ],
            options={
                "ordering": ["conversation", "pk"],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["conversation", "state"], name="rule_by_state")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "start"), name="rule_place_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("text", ""), _negated=True),
                            models.Q(("end__gt", 0), ("message__isnull", False)),
                            _connector="OR",
                        ),
                        name="rule_has_words",
                    ),
                ],
            },
        ),
    ]
