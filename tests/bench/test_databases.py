"""The benchmarks of the database still run: each once, on a few rows."""

import pytest

from bench import context_size, library, long_conversation, review

pytestmark = pytest.mark.django_db(transaction=True)
FEW = {
    context_size: {"SIZES": (44, 60)},
    library: {"MESSAGES": 250},
    long_conversation: {"SIZES": (30, 60)},
    review: {
        **{"CONVERSATIONS": 4, "MESSAGES": 60, "VERSIONS": 4},
        **{"LONG_MESSAGES": 120, "LONG_VERSIONS": 20},
    },
}


@pytest.mark.parametrize("bench", FEW, ids=lambda bench: bench.__name__)
def test_it_runs(bench, monkeypatch, capsys):
    for name, value in {"RUNS": 1, **FEW[bench]}.items():
        monkeypatch.setattr(bench, name, value)
    if bench is review:
        # Pages that only the full database has.
        monkeypatch.setattr(review, "pages", few(review.pages))
    bench.report()
    assert " ms" in capsys.readouterr().out


def few(pages):
    def first_pages(filler):
        found = pages(filler).items()
        return {
            name: path for name, path in found if not ("p=" in path or "v=" in path)
        }

    return first_pages
