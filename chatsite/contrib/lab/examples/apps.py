"""The app of examples, and what it adds to the core."""

from functools import partial

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class ExamplesConfig(AppConfig):
    name = "chatsite.contrib.lab.examples"
    verbose_name = _("Examples")
    admin_section = "memory"

    def ready(self) -> None:
        from chatsite import plugins, slots
        from memory.integrity.audit import find_misplaced

        from . import answers, exporting, parts, services
        from .models import Example, ExampleAnswer

        slots.register("message.more", parts.draw_mark_item)
        slots.register("user.menu", slots.make_link("examples", _("Examples")))
        slots.register("inspector", parts.draw_inspected_examples)
        plugins.register_data(
            name="examples",
            title=_("examples"),
            row=exporting.ExampleRow,
            read=exporting.read_marked,
            write=exporting.write_marked,
            texts=Example.TEXTS,
            forget=services.forget_examples,
            list_own=services.describe_own,
            audit_rules=[partial(find_misplaced, Example, "R6.examples", "example of")],
            owner_actions={services.ACTION: _("marked a reply as an example")},
            staff_actions={
                "example": _("marked as an example"),
                "export": _("exported"),
            },
            log_names={
                "example": _("example"),
                "list example": _("beginnings of examples (in a list)"),
            },
        )
        plugins.register_data(
            spending=ExampleAnswer,
            errors={
                answers.CANNOT_REBUILD: gettext_noop(
                    "The request can't be rebuilt, so it was not sent."
                ),
                answers.TOO_MANY_SUMMARIES: gettext_noop(
                    "This policy would have to summarise too much for one answer."
                ),
            },
        )
