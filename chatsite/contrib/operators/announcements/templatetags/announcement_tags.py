"""Template tags of announcements."""

from django import template

from .. import active_lines

register = template.Library()
register.simple_tag(active_lines.list_lines, name="announcements")
