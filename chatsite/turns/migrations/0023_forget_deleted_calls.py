"""Removal of the words of messages that were deleted before from tool calls.

Such are the request, the waiting text of a late result, and the reason of a user's
refusal. No result of such a call is awaited, and no call that has ended keeps its
arguments.
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
