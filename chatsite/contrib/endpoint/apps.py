"""The app of the endpoint for other clients, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class EndpointConfig(AppConfig):
    name = "chatsite.contrib.endpoint"
    verbose_name = _("Endpoint for other clients")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import hooks
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

        hooks.asgi_applications[START] = asgi.answer_wire
        hooks.asgi_applications[MCP] = asgi.answer_wire
        entrances += asgi.ENTRANCES
        message_deleted.connect(marks.forget_deleted)
        rebuilding.rebuilders["client"] = marks.rebuild_of_client
        EXPLANATIONS["client_gone"] = gettext_noop(
            "The client stopped reading, so this reply ends where it did."
        )
        hooks.sent_elsewhere.append(marks.find_sent_last)
        hooks.source_names["client"] = "%s"
        hooks.row_marks.append(marks.name_client)
        hooks.list_filters.append(single_calls.LIST_FILTER)
        hooks.write_refusals.append(marks.refuse_writing)
        hooks.branch_parts.append(marks.take_over)
        LEAF_ACTIONS[joining.JOIN] = _("joined it to another one")
        LEAF_ACTIONS[joining.SEPARATE] = _("undid the joining")
        hooks.message_parts += [lineage.WHY_ITEM, notes.NOTES]
        hooks.sent_parts.append(lineage.draw_beside_sent)
        hooks.conversation_parts["origin"].append(lineage.draw_origin)
        hooks.banner_lines.append(demo.offer_demo_key)
        hooks.account_sections.append(parts.draw_keys_section)
        hooks.account_rows["api_keys"] = keys.describe_api_keys
        hooks.access_log_names["list apikey"] = _("API keys (in a list)")
        hooks.access_log_names["key"] = _("API key")
        hooks.access_log_actions["key"] = _("read with a key")
