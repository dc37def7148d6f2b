"""The script that dresses pieces of code, with its words."""

from django.template.loader import render_to_string


def draw_script(place: str) -> str:
    """In the head of a page with a message box."""
    if place != "scripts":
        return ""
    return render_to_string("code_blocks/_script.html")
