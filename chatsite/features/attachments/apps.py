"""The app of attachments, and what it adds to the core."""

from channels.db import database_sync_to_async
from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_delete
from django.utils.translation import gettext_lazy as _


class AttachmentsConfig(AppConfig):
    name = "chatsite.features.attachments"
    verbose_name = _("Attachments")

    def ready(self) -> None:
        from chatsite import plugins
        from memory.files import passage_source
        from memory.images import image_source
        from memory.search import conversation_search

        from . import models, uploads
        from .images import audit, export, files, sending
        from .long_files import audit as long_audit
        from .long_files import export as long_export
        from .long_files import finding, searching, store

        passage_source.current = searching.KeptPassages()
        conversation_search.in_files.append(finding.find_in_long_files)
        post_delete.connect(store.drop_with_use, models.LongFileUse)
        image_source.current = sending.KeptImages()
        plugins.mount(
            "/attachments/",
            # With the rest of the form.
            max_bytes=lambda: (settings.ATTACHMENT_MAX_MB + 1) * 1024**2,
        )
        sweep = database_sync_to_async(uploads.delete_expired_uploads)
        plugins.register_job(sweep, due=uploads.find_expired_uploads)
        plugins.register_data(
            name="images",
            title=_("images"),
            row=export.ImageRow,
            read=export.read_exported,
            write=export.write_exported,
            texts=("data", "small"),
            is_of_requests=True,
            copy=files.copy_branch,
            forget=files.forget_images,
            audit_rules=(audit.find_false_images,),
        )
        plugins.register_data(
            name="long_files",
            title=_("long files"),
            row=long_export.FileRow,
            read=long_export.read_exported_long,
            write=long_export.write_exported_long,
            texts=("text",),
            is_of_requests=True,
            copy=store.copy_long,
            forget=store.forget_long,
            audit_rules=(long_audit.find_false_files,),
        )
