"""What templates show of announcements."""

from django import template

from .. import current

register = template.Library()
register.simple_tag(current.list_lines, name="announcements")
