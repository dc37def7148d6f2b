"""Give staff of an existing installation what they had, under the desk's names.

Users who could view any of these tables see the numbers; users who could view messages
read. No one gets the right to export or to erase, which did not exist. Django's own
permissions on the tables open nothing any more, so they go from the list.
"""

from django.db import migrations
from django.db.models import Q

OLD = Q(
    content_type__app_label="memory",
    content_type__model__in=(
        *("conversation", "message", "modelcall", "prompt", "recallentry", "summary"),
    ),
    codename__regex="^(add|change|delete|view)_",
) | Q(content_type__app_label="chat", content_type__model="turn")
NEW = {
    "view_metadata": "Can review who, when and how much, without any text",
    "read_content": "Can read texts and titles",
}


def carry(apps, schema_editor):
    permissions = apps.get_model("auth", "Permission").objects
    old = permissions.filter(OLD).exclude(codename__in=NEW)
    seeing = old.filter(codename__startswith="view_")
    reading = old.filter(codename="view_message")
    for codename, before in (("view_metadata", seeing), ("read_content", reading)):
        for name in ("user_set", "group_set"):
            _give(apps, codename, before, name)
    old.delete()


def _give(apps, codename, before, name):
    Permission = apps.get_model("auth", "Permission")
    holders = getattr(Permission, name).rel.related_model
    field = "user_permissions" if name == "user_set" else "permissions"
    found = holders.objects.filter(**{f"{field}__in": before}).distinct()
    if not found.exists():
        return
    ContentType = apps.get_model("contenttypes", "ContentType")
    kind = ContentType.objects.get(app_label="memory", model="conversation")
    new, _made = Permission.objects.get_or_create(
        content_type=kind, codename=codename, defaults={"name": NEW[codename]}
    )
    for holder in found:
        getattr(holder, field).add(new)


class Migration(migrations.Migration):
    dependencies = [
        ("desk", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memory", "0006_permissions"),
        ("chat", "0005_permissions"),
    ]

    operations = [migrations.RunPython(carry, migrations.RunPython.noop)]
