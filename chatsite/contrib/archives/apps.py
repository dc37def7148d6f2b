"""The app of archives of other chats, and what it adds to the imports."""

from django.apps import AppConfig


class ArchivesConfig(AppConfig):
    name = "chatsite.contrib.archives"

    def ready(self) -> None:
        from chatsite.features.importing.files import reading

        from . import chatgpt, claude, deepseek

        reading.readers["chatgpt"] = chatgpt.read_chatgpt
        reading.readers["claude"] = claude.read_claude
        reading.readers["deepseek"] = deepseek.read_deepseek
