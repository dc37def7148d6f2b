"""The figures as Markdown tables."""

import re
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any

from .figures import OURS, Figures, Results
from .rules import COMPACTIONS, MOST_TOKENS, RULES, WRITERS, RuleSurvival
from .stress import KEPT, LOSSY_TURNS, MESSAGE_TOKENS, PERFECT_TURNS, SEEDS

STRESS = (
    f"**Stress**: facts lost of {PERFECT_TURNS} with a summariser that keeps all it is "
    f"shown; facts alive of {LOSSY_TURNS} with one that keeps each with probability "
    f"{KEPT} whenever it writes (mean of {len(SEEDS)} seeds)"
)

SURVIVAL = (
    f"**Rules**: of {len(RULES)} that the user stated, how many the last request has "
    f"word for word after {COMPACTIONS} compactions (or as many as there were in "
    f"{MOST_TOKENS:,} tokens), and the share of all requests with all of them, with "
    "three summarisers"
)

Column = tuple[str, Callable[[dict[str, Any]], str]]

COLUMNS: tuple[Column, ...] = (
    ("prompt tokens", lambda report: f"{report['prompt_tokens_per_turn']:,.0f}"),
    ("largest", lambda report: f"{report['largest_prompt']:,}"),
    ("cacheable", lambda report: f"{report['cacheable_share']:.0%}"),
    ("cost", lambda report: f"{report['effective_cost_per_turn']:,.0f}"),
    ("turns blocked", lambda report: f"{report['blocked_turns']:,}"),
    ("rewrites", lambda r: f"{r['rewrites_median']:.0f} / {r['rewrites_max']}"),
    ("never read", lambda report: f"{report['never_read']:,}"),
    ("lost", lambda report: f"{report['lost']:,}"),
    ("without question", lambda report: f"{report['without_user_message']:,}"),
    ("evidence in window", lambda report: percent(report["evidence_in_window"])),
    ("newest value", lambda report: percent(report["newest_in_request"])),
)


def write_tables(results: Results) -> str:
    versions = ", ".join(f"{name} {known}" for name, known in results.versions.items())
    parts = [f"Measured with {versions}."]
    for name, size in results.sets.items():
        turns = results.figures[0].reports[name]["turns"]
        parts.append(f"**{name}**: {size} conversations, {turns:,} turns")
        parts.append("\n".join(write_set(results.figures, name)))
    parts.append(STRESS)
    parts.append("\n".join(write_stress(results.figures)))
    parts.append(SURVIVAL)
    parts.append("\n".join(write_rules(results.figures)))
    return "\n\n".join(parts)


def write_set(figures: Sequence[Figures], name: str) -> Iterator[str]:
    titles = [*(title for title, _ in COLUMNS), "window + search", "requests"]
    yield from head(["", *titles])
    for each in figures:
        yield write_row(each, name)


def write_row(figures: Figures, name: str) -> str:
    report = figures.reports[name]
    ours = figures.name.startswith(OURS)
    # The others have no search over the archive of their own.
    found = percent(report["evidence_reachable"]) if ours else "-"
    cells = [*(show(report) for _, show in COLUMNS), found, figures.digest(name)]
    return row([show_name(figures), *cells])


def renew_rows(page: str, results: Results) -> str:
    """Put the rows of these contestants and sets in the place of those of a page."""
    for name in results.sets:
        for each in results.figures:
            begins = re.escape(f"| {show_name(each)} |")
            place = rf"(?s)(\*\*{re.escape(name)}\*\*:.*?\n){begins}[^\n]*"
            new = write_row(each, name)
            page = re.sub(place, lambda at, new=new: at[1] + new, page, count=1)
    return page


def write_stress(figures: Sequence[Figures]) -> Iterator[str]:
    sizes = [f"lost, {size}-token messages" for size in MESSAGE_TOKENS]
    yield from head(
        ["", *sizes, "alive, short facts", "alive, long facts", "prompt tokens"]
    )
    for each in figures:
        survival = each.survival
        yield row(
            [
                show_name(each),
                *map(str, survival.lost),
                f"{mean(survival.alive):.0f}",
                f"{mean(survival.alive_long):.0f}",
                f"{survival.prompt_tokens:,.0f}",
            ]
        )


def write_rules(figures: Sequence[Figures]) -> Iterator[str]:
    yield from head(["", *WRITERS])
    for each in figures:
        cells = [show_survival(each.rules[writer]) for writer in WRITERS]
        yield row([show_name(each), *cells])


def show_survival(found: RuleSurvival) -> str:
    few = "" if found.compactions >= COMPACTIONS else f" ({found.compactions})"
    return f"{found.in_last}, {found.with_all:.0%}{few}"


def show_name(figures: Figures) -> str:
    return f"**{figures.name}**" if figures.name.startswith(OURS) else figures.name


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def head(titles: Sequence[str]) -> Iterator[str]:
    yield row(titles)
    yield row(["---", *["---:"] * (len(titles) - 1)])


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
