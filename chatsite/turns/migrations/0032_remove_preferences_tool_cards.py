from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chat", "0031_enter_breaks_line")]

    operations = [migrations.RemoveField("preferences", "tool_cards")]
