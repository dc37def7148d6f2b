"""The app of the endpoint for other clients, and what it adds to the core."""

from django.apps import AppConfig
from django.db.models.signals import pre_delete
from django.utils.translation import gettext_lazy as _


class EndpointConfig(AppConfig):
    name = "chatsite.contrib.endpoint"
    verbose_name = _("Endpoint for other clients")
    admin_section = "auth"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.view import rebuilding

        from . import (
            asgi,
            conversation_hooks,
            demo,
            keys,
            models,
            parts,
            provider_erasure,
        )
        from .lineage import joining, notes, single_calls
        from .lineage import parts as lineage
        from .mcp_server import checks  # noqa: F401

        asgi.mount_all()
        pre_delete.connect(provider_erasure.note_erased, models.ClientRequest)
        plugins.register_job(
            provider_erasure.sweep_erasures, due=provider_erasure.find_due
        )
        rebuilding.rebuilders["client"] = conversation_hooks.rebuild_of_client
        slots.register("row.mark", conversation_hooks.name_client)
        plugins.register_source(single_calls.LIST_FILTER.name, single_calls.LIST_FILTER)
        slots.register("message.more", lineage.draw_why_item)
        slots.register("message.below", notes.draw_note, rows=notes.ROWS)
        slots.register("sent", lineage.draw_beside_sent)
        slots.register("section.held", "endpoint/_held.html")
        slots.register("conversation.origin", lineage.draw_origin)
        slots.register("conversation.export", parts.draw_continue_item)
        slots.register("run", demo.offer_demo_key)
        slots.register("account.security", parts.draw_keys_section)
        plugins.register_data(
            copy=conversation_hooks.copy_to_branch,
            forget=conversation_hooks.forget_deleted,
            find_sent_last=conversation_hooks.find_sent_last,
            owner_actions={
                joining.JOIN: _("joined it to another one"),
                joining.SEPARATE: _("undid the joining"),
            },
            sources={"client": "%s"},
        )
        plugins.register_data(
            name="api_keys",
            list_own=keys.describe_api_keys,
            staff_actions={"key": _("read with a key")},
            log_names={"list apikey": _("API keys (in a list)"), "key": _("API key")},
        )
