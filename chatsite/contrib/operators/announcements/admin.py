"""Announcements in the admin, for staff with Django's permissions for them."""

from django.contrib import admin

from chatsite.review.readonly import ShortListAdmin

from .models import Announcement


@admin.register(Announcement)
class AnnouncementAdmin(ShortListAdmin):
    list_display = ("text", "text_zh", "level", "begins_at", "ends_at")
    list_filter = ("level",)
    sortable_by = ()
    fields = ("text", "text_zh", "level", ("begins_at", "ends_at"))
