from django.db import migrations


class Migration(migrations.Migration):
    """The tables stay as they are; they belong to the app `tools` from now on."""

    dependencies = [
        ("chat", "0026_move_share"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="ResultFile"),
                migrations.DeleteModel(name="ToolCall"),
            ],
        ),
    ]
