"""The app of diagrams, and what it adds to pieces of code."""

from django.apps import AppConfig


class DiagramsConfig(AppConfig):
    name = "chatsite.contrib.diagrams"

    def ready(self) -> None:
        from chatsite import slots
        from chatsite.ops.entrances import entrances, make_public_entrance

        entrances.append(make_public_entrance("/diagram-frame/"))
        slots.register("conversation.head", "diagrams/_drawing.html")
