"""The app of diagrams, and what it adds to pieces of code."""

from django.apps import AppConfig


class DiagramsConfig(AppConfig):
    name = "chatsite.contrib.diagrams"

    def ready(self) -> None:
        from chatsite import plugins, slots

        plugins.mount("/diagram-frame/", access_log="none: it shows what the page has")
        slots.register("conversation.head", "diagrams/_drawing.html")
