"""The app of attachments, and what it adds to the core."""

from channels.db import database_sync_to_async
from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AttachmentsConfig(AppConfig):
    name = "chatsite.attachments"
    verbose_name = _("Attachments")

    def ready(self) -> None:
        from chatsite import hooks
        from chatsite.turns import runner
        from memory.actions import message_deleted
        from memory.images import image_source

        from . import parts, reading, uploads
        from .images import audit, export, files, imported, sending

        hooks.file_source = hooks.FileSource(
            uploads.read_upload_ids,
            uploads.find_files,
            uploads.take_files,
            files.keep_images,
            parts.find_address,
            files.has_any_image,
            files.read_image_of,
            reading.read_fetched,
            imported.read_imported,
        )
        image_source.current = sending.KeptImages()
        message_deleted.connect(files.forget_images)
        hooks.branch_parts.append(files.copy_branch)
        hooks.export_sections.append(export.SECTION)
        hooks.audit_rules.append(audit.find_false_images)
        hooks.composer_parts.append(parts.draw_composer_part)
        sweep = database_sync_to_async(uploads.delete_expired_uploads)
        runner.jobs.append(runner.Job(sweep, due=uploads.find_expired_uploads))
