"""The app of the endpoint for other clients, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class EndpointConfig(AppConfig):
    name = "chatsite.contrib.endpoint"
    verbose_name = _("Endpoint for other clients")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from chatsite.ops.entrances import entrances
        from chatsite.protocol.errors import EXPLANATIONS
        from memory.actions import message_deleted
        from memory.models.change import LEAF_ACTIONS
        from memory.view import rebuilding

        from . import asgi, demo, keys, marks, parts
        from .addresses import MCP, START
        from .lineage import joining, notes, single_calls
        from .lineage import parts as lineage
        from .mcp_server import checks  # noqa: F401

        plugins.asgi_applications[START] = asgi.answer_wire
        plugins.asgi_applications[MCP] = asgi.answer_wire
        entrances += asgi.ENTRANCES
        message_deleted.connect(marks.forget_deleted)
        rebuilding.rebuilders["client"] = marks.rebuild_of_client
        EXPLANATIONS["client_gone"] = gettext_noop(
            "The client stopped reading, so this reply ends where it did."
        )
        plugins.sent_elsewhere.append(marks.find_sent_last)
        plugins.source_names["client"] = "%s"
        slots.register("row.mark", marks.name_client)
        plugins.list_filters.append(single_calls.LIST_FILTER)
        plugins.write_refusals.append(marks.refuse_writing)
        plugins.branch_parts.append(marks.take_over)
        LEAF_ACTIONS[joining.JOIN] = _("joined it to another one")
        LEAF_ACTIONS[joining.SEPARATE] = _("undid the joining")
        slots.register("message.menu", lineage.draw_why_item)
        slots.register("message.below", notes.draw_note, rows=notes.ROWS)
        slots.register("sent", lineage.draw_beside_sent)
        slots.register("conversation.origin", lineage.draw_origin)
        slots.register("run", demo.offer_demo_key)
        slots.register("account", parts.draw_keys_section)
        plugins.account_rows["api_keys"] = keys.describe_api_keys
        plugins.access_log_names["list apikey"] = _("API keys (in a list)")
        plugins.access_log_names["key"] = _("API key")
        plugins.access_log_actions["key"] = _("read with a key")
