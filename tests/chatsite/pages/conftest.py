"""Counts the templates that a page is made of."""

from collections import Counter

import pytest
from django.template import Template

from chatsite.pages import parts


@pytest.fixture
def rendered(monkeypatch):
    """How often each template was rendered since a test began."""
    counts = Counter()
    render = Template._render

    def counted(self, context):
        counts[self.name] += 1
        return render(self, context)

    monkeypatch.setattr(Template, "_render", counted)
    parts.cache.clear()
    return counts
