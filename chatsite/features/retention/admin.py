"""The runs in the admin: what each night deleted."""

from django.contrib import admin

from chatsite.review.readonly import ReadOnlyAdmin

from .models import RetentionRun


@admin.register(RetentionRun)
class RetentionRunAdmin(ReadOnlyAdmin):
    list_display = (
        *("day", "begun_at", "finished_at", "conversations", "sessions"),
        *("logins", "accesses", "records"),
    )
    list_filter = ("day",)
    fields = (
        ("day", "begun_at", "finished_at"),
        ("conversations", "sessions", "logins", "accesses", "records"),
    )
