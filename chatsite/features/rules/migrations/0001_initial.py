from django.db import migrations, models

STATES = [
    ("offered", "Offered"),
    ("kept", "Kept by itself"),
    ("confirmed", "Confirmed"),
    ("dismissed", "Dismissed"),
    ("replaced", "Replaced"),
]
KINDS = [
    ("instruction", "Instruction"),
    ("preference", "Preference"),
    ("constraint", "Constraint"),
]


def take_over(apps, schema_editor):
    """The table was one of the app `memory`: what was logged of its rows stays theirs."""
    _rename_content_type(apps, schema_editor, "memory", "rules")


def give_back(apps, schema_editor):
    """Without the app nothing deletes its rows with the messages that they are of, and
    no request has them."""
    alias = schema_editor.connection.alias
    apps.get_model("rules", "Rule").objects.using(alias).all().delete()
    rows = apps.get_model("memory", "Conversation").objects.using(alias)
    rows.exclude(rule_count=0).update(rule_count=0)
    _rename_content_type(apps, schema_editor, "rules", "memory")


def _rename_content_type(apps, schema_editor, old, new):
    manager = apps.get_model("contenttypes", "ContentType").objects
    rows = manager.using(schema_editor.connection.alias).filter(model="rule")
    if not rows.filter(app_label=new).exists():
        rows.filter(app_label=old).update(app_label=new)


class Migration(migrations.Migration):
    # The table is there: memory 0021 has made it.
    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("memory", "0033_move_rules"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                                choices=KINDS,
                                max_length=11,
                                verbose_name="kind",
                            ),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=STATES, max_length=9, verbose_name="state"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(
                                auto_now_add=True, verbose_name="created at"
                            ),
                        ),
                        (
                            "conversation",
                            models.ForeignKey(
                                on_delete=models.CASCADE,
                                related_name="rules",
                                to="memory.conversation",
                            ),
                        ),
                        (
                            "message",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=models.CASCADE,
                                related_name="rules",
                                to="memory.message",
                            ),
                        ),
                        (
                            "replaced_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=models.SET_NULL,
                                related_name="replaces",
                                to="rules.rule",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "memory_rule",
                        "verbose_name": "rule",
                        "verbose_name_plural": "rules",
                        "ordering": ["conversation", "pk"],
                        "default_permissions": (),
                        "indexes": [
                            models.Index(
                                fields=["conversation", "state"], name="rule_by_state"
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("message", "start"), name="rule_place_unique"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("text", ""), _negated=True),
                                    models.Q(
                                        ("end__gt", 0), ("message__isnull", False)
                                    ),
                                    _connector="OR",
                                ),
                                name="rule_has_words",
                            ),
                        ],
                    },
                ),
            ],
        ),
        migrations.RunPython(take_over, give_back),
    ]
