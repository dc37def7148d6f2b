"""Calls of tools lose the words of messages that were deleted before: what was asked,
what a late result is waited for with, and why a person said no. No result of such a
call is awaited, and no call that has ended keeps what its tool was asked with.
"""

from django.db import migrations
from django.db.models import Q
from django.db.models.functions import Now


def forget(apps, schema_editor):
    calls = apps.get_model("chat", "ToolCall").objects
    asked = Q(request__deleted_at__isnull=False)
    calls.filter(asked).update(arguments={}, digest="")
    told = Q(result__deleted_at__isnull=False)
    told |= Q(late_result__deleted_at__isnull=False)
    gone = calls.filter(asked | told)
    gone.filter(state="late").update(
        state="cancelled", error="call_deleted", finished_at=Now()
    )
    gone.update(reason="", handle=None, next_look_at=None, owner="")
    over = calls.exclude(state="late").filter(next_look_at=None)
    over.filter(handle__isnull=False).update(handle=None)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0022_result_files"),
    ]

    operations = [
        migrations.RunPython(forget, migrations.RunPython.noop, elidable=True),
    ]
