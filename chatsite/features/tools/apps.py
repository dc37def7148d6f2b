"""The app of tools, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class ToolsConfig(AppConfig):
    name = "chatsite.features.tools"
    verbose_name = _("Tools")
    admin_section = "chat"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.review import naming

        from . import (  # noqa: F401
            checks,
            commands,
            consent,
            events,
            export,
            late_results,
            parts,
            registry,
        )
        from .models import ToolCall
        from .tool_loop import audit, result_files

        plugins.register_field("start", "tools", parts.make_start_field)
        slots.register("conversation.memory", parts.draw_menu_item)
        plugins.register_socket(
            events=[events.ToolEvent],
            commands=commands.READERS,
            find_standing=commands.find_standing,
        )
        named = gettext_noop("tool call"), gettext_noop("tool calls")
        naming.name_table(ToolCall, *named)
        plugins.register_job(
            late_results.sweep, release=late_results.release, due=late_results.due
        )
        plugins.register_job(late_results.expire_questions, due=consent.expired)
        plugins.register_data(
            name="tool_calls",
            title=_("tool calls"),
            row=export.ToolCallRow,
            read=export.read_calls,
            write=export.write_calls,
            texts=("call_id", "name", "reason", "error"),
            copy=export.copy_calls,
            forget=ToolCall.forget_message,
            audit_rules=audit.FINDERS,
            log_names={
                "toolcall": _("tool call"),
                "list toolcall": _("tool calls (in a list)"),
            },
        )
        plugins.register_data(forget=late_results.forget)
        plugins.register_data(
            name="files",
            title=_("files in results"),
            row=export.ResultFileRow,
            read=export.read_files,
            write=export.write_files,
            texts=("name", "title", "kind", "url", "data"),
            describe=export.describe_sources,
            copy=export.copy_files,
            forget=result_files.forget,
        )
