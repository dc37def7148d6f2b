from django.db import migrations, models

NAMES = {
    "messages_at": "next_message_at",
    "conversations_at": "next_conversation_at",
    "summaries_at": "next_summary_at",
}


class Migration(migrations.Migration):
    """The columns keep their names, so processes of the release before go on."""

    dependencies = [
        ("chat", "0027_move_tools"),
    ]

    operations = [
        operation
        for old, new in NAMES.items()
        for operation in (
            migrations.AlterField(
                model_name="allowance",
                name=old,
                field=models.DateTimeField(editable=False, null=True, db_column=old),
            ),
            migrations.RenameField("allowance", old, new),
        )
    ]
