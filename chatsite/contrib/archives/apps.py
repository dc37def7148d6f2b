"""The app of archives of other chats, and what it adds to the imports."""

from django.apps import AppConfig


class ArchivesConfig(AppConfig):
    name = "chatsite.contrib.archives"

    def ready(self) -> None:
        from chatsite import plugins
        from chatsite.features.importing.files.reading import ArchiveReader

        from . import chatgpt, claude, deepseek

        readers = {
            "chatgpt": chatgpt.read_chatgpt,
            "claude": claude.read_claude,
            "deepseek": deepseek.read_deepseek,
        }
        for site, read in readers.items():
            plugins.register_source(site, ArchiveReader(read))
