"""Creates groups of staff with the permissions that belong together.

It only runs on demand: no upgrade changes who may do what.
"""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from chatsite.plugins import app_data
from chatsite.review import rights

# By the name of the group; apps add theirs.
GROUPS = {
    "auditors": (rights.METADATA,),
    "reviewers": (rights.METADATA, rights.CONTENT),
    "moderators": (rights.METADATA, rights.CONTENT, "chat.change_allowance"),
    "data protection": (
        *(rights.METADATA, rights.EXPORT, rights.PURGE),
        *("auth.view_user", "auth.delete_user"),
    ),
}


def list_codes(group: Group) -> set[str]:
    return {_name(each) for each in group.permissions.select_related("content_type")}


def _name(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


class Command(BaseCommand):
    help = (
        f"Creates groups of staff: {', '.join(GROUPS)}. Existing groups stay as they "
        "are. Adds no users to them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--reset",
            action="store_true",
            help="give groups of these names their permissions, and no others",
        )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        known = {
            _name(each): each
            for each in Permission.objects.select_related("content_type")
        }
        for name, codes in GROUPS.items():
            given = (data.permissions.get(name, ()) for data in app_data)
            wanted = {*codes}.union(*given)
            group, is_new = Group.objects.get_or_create(name=name)
            if is_new or options["reset"]:
                group.permissions.set(known[code] for code in wanted)
            if options["verbosity"]:
                self._describe(group, wanted, "created" if is_new else "is there")

    def _describe(self, group: Group, wanted: set[str], state: str) -> None:
        has = list_codes(group)
        self.stdout.write(f"{group.name}: {state}")
        for code in sorted(has | wanted):
            remark = "" if code in has & wanted else " (besides)"
            remark = remark if code in has else " (missing: --reset gives it)"
            self.stdout.write(f"  {code}{remark}")
