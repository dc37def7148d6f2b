"""The table of devices that people are logged in on."""

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models

from memory.models import PrivateRow


class Device(PrivateRow):
    """A browser in which a user is logged in, as long as its session exists.

    Of the user agent only the browser's name and system are stored, and no address.
    """

    # No constraint: without this app sessions still end, whatever rows it has left.
    session = models.OneToOneField(
        Session, models.CASCADE, db_constraint=False, related_name="device"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="devices"
    )
    # One of the words of naming.BROWSERS and of naming.SYSTEMS; "" = another.
    browser = models.CharField(max_length=20, blank=True)
    system = models.CharField(max_length=20, blank=True)
    logged_in_at = models.DateTimeField(auto_now_add=True)
    # Written at most once an hour.
    last_seen_at = models.DateTimeField()
