"""The app of facts, and what it adds to the core."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FactsConfig(AppConfig):
    name = "chatsite.features.facts"
    verbose_name = _("Facts about people")

    def ready(self) -> None:
        from django.db.models.signals import pre_delete

        from chatsite import plugins, slots
        from memory.rules import rule_source

        from . import audit, export, forms, models, parts, services, store

        rule_source.sources["facts"] = store.StatedFacts()
        pre_delete.connect(store.forget_sent, sender=models.Fact)
        slots.register("message.below", parts.draw_stated_facts, rows=parts.ROWS)
        slots.register("section.facts", parts.draw_facts_section)
        slots.add_static_file("facts/facts.css", "model")
        plugins.register_field("policy", "facts", forms.make_fact_policy_field)
        plugins.register_field("preferences", "facts", forms.make_fact_preference_field)
        link = slots.make_link("facts", _("What is remembered about you"))
        slots.register("user.menu", link)
        plugins.register_data(
            name="facts",
            title=_("facts"),
            row=export.FactRow,
            read=export.read_exported_facts,
            write=export.write_exported_facts,
            texts=("text",),
            forget=store.forget_facts,
            list_own=services.describe_facts,
            audit_rules=(audit.find_bad_facts,),
            owner_actions=services.ACTIONS,
            changing_actions=services.CHANGING,
        )
