"""Filters of the pages: safe HTML of a text, and numbers as people write them."""

from django import template
from django.utils.safestring import SafeString

from chatsite.chat.rendering import render
from chatsite.llm import providers

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return render(text)


@register.filter
def thousands(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


@register.filter
def model_label(name: str) -> str:
    return providers.label(name)


@register.filter
def percent(permille: int) -> str:
    """A length for SVG."""
    return f"{permille / 10}%"
