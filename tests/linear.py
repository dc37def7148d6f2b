"""Growth of the time of a pattern or a function with its text.

Python's regular expressions hold the interpreter while they search, so one that is
quadratic freezes the whole process for all its users. Patterns and functions are found
in the packages, not listed: a new one is tried without anybody thinking of it.
"""

import ast
import gc
import importlib
import inspect
import pkgutil
import re
import signal
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from re import _constants as ops
from re import _parser as parser
from types import FunctionType, ModuleType
from typing import Any

import chatsite
import memory

# LARGE is what a message may have (MESSAGE_MAX_CHARS).
TINY, SMALL, LARGE = 250, 2_000, 32_000
# Below this a time says nothing, and freezes no process.
FLOOR_SECONDS = 0.05
# A busy machine takes so many times as long for the same.
BUSY = 3
# How many times longer LARGE may take than SMALL: linear is 16, quadratic 256. And
# SMALL than TINY, to be looked at more closely: linear is 8, quadratic 64.
MOST_TIMES, MANY_TIMES = 48, 12
# A search that takes longer is ended.
ALARM_SECONDS = 1.5

# What people repeat, with or without meaning harm; and what ends a repetition in a way
# that a pattern did not expect.
UNITS = (
    *(" ", "\n", "\t", "\u3000", " \n", "a", "A", "1", "_", "-", ".", ",", "?", "!"),
    *("(", ")", "[", "]", "{", "<", ">", '"', "'", "`", "*", "$", "\\", "/", "|", "&"),
    *("以", "，", "。", "“", "？", "a ", "Aa ", "a.", "a. ", "1,", "1.", "1-", "a-"),
    *("a'", "a@", "a/", "A_", "a\n", "a,b; ", "not ", "the ", "http://", "\\\\"),
    *("[a](", '\\"'),
)
TAIL = "\x00x"

# What is given less, by the beginning of its name, and by what.
BOUNDED = {
    # rules/detection.py reads SENTENCE_CHARS of a sentence, as facts/detection.py does,
    # and rules are shorter.
    "memory.engine.rules.patterns.": 600,
    "memory.engine.rules.english.": 600,
    "memory.engine.rules.chinese.": 600,
    "memory.engine.rules.wishes.": 600,
    "memory.engine.facts.english.": 600,
    "memory.engine.facts.chinese.": 600,
    # MAX_CHARS of facts/detection.py.
    "memory.engine.facts.topics.": 200,
    # END_CHARS of rules/detection.py.
    "memory.engine.rules.detection.CLAUSE_END": 900,
    # REFUSAL_MAX_CHARS.
    "memory.engine.summaries.validation.REFUSAL": 400,
    # The characters before a name.
    "memory.engine.summaries.facts.SENTENCE_START": 6,
    # MAX_PATTERN_CHARS of policies.
    "memory.engine.important_patterns.": 200,
    # MAX_QUOTE and MAX_CHARS: longer messages ask one thing, and no tool.
    "chatsite.llm.demo.answers.AND_QUESTION": 300,
    "chatsite.llm.demo.tool_use.CALCULATION": 300,
    "chatsite.llm.demo.tool_use.REMINDERS": 300,
    "chatsite.llm.demo.tool_use.SEARCHES": 300,
    "chatsite.llm.demo.tool_use.NOISE": 300,
    # MAX_QUESTION_CHARS of both ends.
    "chatsite.llm.demo.extractive.QUESTION_": 200,
    # MAX_TITLE_CHARS, and a little more than the longest Chinese one.
    "chatsite.llm.demo.extractive.LOOSE_END": 60,
    "chatsite.llm.demo.extractive.HALF_WORD": 20,
}


def bound_of(name: str) -> int:
    """The most characters that a pattern or function of this name is given."""
    return next((n for known, n in BOUNDED.items() if name.startswith(known)), LARGE)


# Modules that only run as a process of their own, or say how the site is put together.
# The last ones need tables that are there only where a setting asks for them; they keep
# no pattern (test_linear.py).
NOT_READ = re.compile(
    r"\.(?:migrations|management|asgi|settings|urls)\b|\.__main__$"
    r"|\.organisation\.(?!configuration$|membership$|encryption$)"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern of the product, by its name, and how it is used: "search", "match"."""

    name: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


@dataclass(frozen=True, slots=True)
class Slow:
    """A slow pattern or function with its text, and its times for SMALL characters,
    where they were compared, and for `most`.
    """

    name: str
    text: str
    most: int
    small: float
    large: float

    def __str__(self) -> str:
        times = f"{self.large * 1000:.0f} ms or more for {self.most:,} characters"
        if self.small:
            times = f"{self.small * 1000:.1f} ms for {SMALL:,}, {times}"
        return f"{self.name} on {self.text!r}: {times}"


class TooLongError(Exception):
    """The alarm came."""


@dataclass(slots=True)
class Shape:
    """Texts of any size: a beginning, a unit repeated, an end."""

    head: str
    unit: str
    tail: str = ""

    def make(self, size: int) -> str:
        return self.head + (self.unit * (size // len(self.unit) + 1))[:size] + self.tail

    def __str__(self) -> str:
        return f"{self.head}({self.unit})*{self.tail}"[:120]


SHAPES = [Shape("", unit, TAIL) for unit in UNITS]
SHAPES += [Shape("", unit) for unit in (" ", "\n", "a", "[", "?", ")", '\\"')]
# What stands once, and what then has no end.
SHAPES += [
    Shape("http://a", ")"),
    Shape("http://a/", "(", ")"),
    Shape("[a](", "("),
    Shape("always be nice", " ", "x"),
    Shape("[a]: b\n\n", "[a]"),
    Shape("```\n", "a\n"),
    Shape("| a |\n|---|\n", "| a |\n"),
    Shape("$", "{", "$"),
    Shape("- a\n", "  - a\n"),
]


def modules() -> Iterator[ModuleType]:
    for package in (chatsite, memory):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not NOT_READ.search(info.name):
                yield importlib.import_module(info.name)


@cache
def find_patterns() -> list[Found]:
    """All compiled patterns that modules keep: as globals, in collections, in classes
    and in values of the product's own classes; and those written inside of calls."""
    names: dict[re.Pattern[Any], str] = {}
    methods: dict[re.Pattern[Any], set[str]] = defaultdict(set)
    globals_of = {module.__name__: vars(module) for module in modules()}
    for module in modules():
        for name, pattern in _within(module):
            names.setdefault(pattern, f"{module.__name__}.{name}")
            if globals_of[module.__name__].get(name) is not pattern:
                methods[pattern].add("search")
        for owner, name, method in _uses(module):
            pattern = globals_of.get(owner or module.__name__, {}).get(name)
            if isinstance(pattern, re.Pattern):
                methods[pattern].add(method)
        for pattern, method in _inline(module):
            names.setdefault(pattern, f"{module.__name__}: re.{method}")
            methods[pattern].add(method)
    return [
        Found(name, pattern, frozenset(methods[pattern] or {"search"}))
        for pattern, name in names.items()
    ]


def _within(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    seen: set[int] = set()
    own = _assigned(module)
    waiting = [(name, each) for name, each in vars(module).items() if name in own]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, re.Pattern):
            yield name, value
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        inner: list[Any] = []
        if isinstance(value, dict):
            inner = [*value.values(), *value]
        elif isinstance(value, list | tuple | set | frozenset):
            inner = [*value]
        elif _is_own(value):
            slots = (getattr(value, each, None) for each in _slots(type(value)))
            inner = [*getattr(value, "__dict__", {}).values(), *slots]
        waiting += [(f"{name}[{place}]", each) for place, each in enumerate(inner)]


def _assigned(module: ModuleType) -> set[str]:
    """The names that a module gives itself, not those that it imports."""
    found = set()
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
            found.update(names)
    return found


def _is_own(value: Any) -> bool:
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.split(".")[0] in ("chatsite", "memory")


def _slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        slots = getattr(each, "__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _uses(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Each NAME.method in the source, with the module that NAME is of ("" = this)."""
    for node in ast.walk(_tree(module)):
        if not isinstance(node, ast.Attribute):
            continue
        match node.value:
            case ast.Name(name):
                yield "", name, node.attr
            case ast.Attribute(ast.Name(owner), name):
                other = getattr(module, owner, None)
                if isinstance(other, ModuleType):
                    yield other.__name__, name, node.attr


METHODS = ("search", "match", "fullmatch", "split", "sub", "findall", "finditer")


def _inline(module: ModuleType) -> Iterator[tuple[re.Pattern[Any], str]]:
    for node in ast.walk(_tree(module)):
        match node:
            case ast.Call(
                ast.Attribute(ast.Name("re"), method), [ast.Constant(text), *_]
            ) if method in METHODS and isinstance(text, str):
                yield re.compile(text), method


@cache
def _tree(module: ModuleType) -> ast.Module:
    file = module.__file__ or ""
    with open(file, encoding="utf-8") as source:
        return ast.parse(source.read())


def find_functions() -> dict[str, Callable[[str], Any]]:
    """The public functions that need one text and nothing else."""
    found: dict[str, Callable[[str], Any]] = {}
    for module in modules():
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if is_own and not name.startswith("_") and _takes_one_text(value):
                found[f"{module.__name__}.{name}"] = value
    return found


def _takes_one_text(value: Any) -> bool:
    value = inspect.unwrap(value) if callable(value) else value
    if not isinstance(value, FunctionType) or inspect.iscoroutinefunction(value):
        return False
    needed = [
        each
        for each in inspect.signature(value).parameters.values()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    return len(needed) == 1 and needed[0].annotation in (str, "str")


def shapes_of(pattern: re.Pattern[Any]) -> list[Shape]:
    """The usual units, and what this pattern itself begins with before it repeats
    something without end."""
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode("latin-1"))
    own: dict[str, Shape] = {}
    for before, repeated in _repeats(parser.parse(pattern.pattern, pattern.flags), ""):
        if before:
            own.setdefault(f"{before}*", Shape("", before, "\x00"))
        if repeated:
            own.setdefault(f"{before}({repeated}*", Shape(before, repeated, "\x00"))
            own.setdefault(f"({before}{repeated}", Shape("", before + repeated, "\x00"))
    return SHAPES + [*own.values()]


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield an example of the text before each unbounded repetition, and of the
    repetition itself.
    """
    for op, value in tree:
        match op:
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                _, most, inner = value
                if most == ops.MAXREPEAT:
                    yield before, _example(inner)
                yield from _repeats(inner, before)
            case ops.SUBPATTERN:
                yield from _repeats(value[-1], before)
            case ops.ATOMIC_GROUP:
                yield from _repeats(value, before)
            case ops.BRANCH:
                for branch in value[1]:
                    yield from _repeats(branch, before)
        before += _example([(op, value)])


def _example(tree: Any) -> str:
    """A short text that this part of a pattern matches, or nearly."""
    return "".join(_example_of(op, value) for op, value in tree)


CATEGORIES = {
    ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_DIGIT: "1",
    ops.CATEGORY_WORD: "a",
    ops.CATEGORY_NOT_SPACE: "a",
    ops.CATEGORY_NOT_DIGIT: "a",
    ops.CATEGORY_NOT_WORD: ".",
}


def _example_of(op: Any, value: Any) -> str:
    match op:
        case ops.LITERAL:
            return chr(value)
        case ops.NOT_LITERAL | ops.ANY:
            return "a"
        case ops.IN:
            return _one_of(value)
        case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
            return _example(value[2]) * max(1, min(value[0], 3))
        case ops.SUBPATTERN:
            return _example(value[-1])
        case ops.ATOMIC_GROUP:
            return _example(value)
        case ops.BRANCH:
            return _example(value[1][0])
    return ""


def _one_of(items: Any) -> str:
    first, rest = items[0], items[1:]
    if first[0] is ops.NEGATE:
        refused = re.compile("[" + "".join(map(_as_class, rest)) + "]")
        return next(each for each in 'a1 .-"水' if not refused.match(each))
    match first:
        case (ops.LITERAL, code):
            return chr(code)
        case (ops.RANGE, (low, _)):
            return chr(low)
        case (ops.CATEGORY, kind):
            return CATEGORIES[kind]
    return ""


def _as_class(item: Any) -> str:
    match item:
        case (ops.LITERAL, code):
            return re.escape(chr(code))
        case (ops.RANGE, (low, high)):
            return f"{re.escape(chr(low))}-{re.escape(chr(high))}"
        case (ops.CATEGORY, kind):
            names = {
                ops.CATEGORY_SPACE: r"\s",
                ops.CATEGORY_DIGIT: r"\d",
                ops.CATEGORY_WORD: r"\w",
                ops.CATEGORY_NOT_SPACE: r"\S",
                ops.CATEGORY_NOT_DIGIT: r"\D",
                ops.CATEGORY_NOT_WORD: r"\W",
            }
            return names[kind]
    return ""


def run_pattern(found: Found) -> Callable[[str], None]:
    """The pattern on a text, in the dearest of the ways in which it is used."""
    is_bytes = isinstance(found.pattern.pattern, bytes)
    used = found.methods & {*METHODS}
    is_tried_once = used and used <= {"match", "fullmatch"}
    uses = used if is_tried_once else {"finditer"}

    def run(text: str) -> None:
        given = text.encode() if is_bytes else text
        for method in uses:
            made = getattr(found.pattern, method)(given)
            if method == "finditer":
                deque(made, 0)

    return run


def run_function(function: Callable[[str], Any]) -> Callable[[str], None]:
    """The function on a text, to the end where it finds one thing after another."""

    def run(text: str) -> None:
        found = function(text)
        if isinstance(found, Iterator):
            deque(found, 0)

    return run


def measure(
    call: Callable[[str], Any], text: str, most: float = ALARM_SECONDS
) -> float:
    """The processor time of a call, which is ended when it has taken `most` seconds."""

    def ring(*_: Any) -> None:
        raise TooLongError

    # Its error must not end in a finaliser, where it would be lost.
    gc.disable()
    # While an alarm is set, Linux counts the time of the process in ticks of 4 ms only.
    before = signal.signal(signal.SIGPROF, ring)
    started = time.thread_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, most + 0.01)
        try:
            call(text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TooLongError:
        return most + 0.01
    except Exception:  # noqa: BLE001, S110 - refusing a text is an answer, too
        pass
    finally:
        signal.signal(signal.SIGPROF, before)
        gc.enable()
    return time.thread_time() - started


def find_slow(
    name: str, call: Callable[[str], Any], shapes: list[Shape], *, most: int = LARGE
) -> Slow | None:
    """The first of the shapes on which a call is too slow, if any. Where it is given no
    more than `most` characters, it is only tried on as many, and has to be quick."""
    for shape in shapes:
        if most < LARGE:
            took = min(measure(call, shape.make(most)) for _ in range(2))
            if took > BUSY * FLOOR_SECONDS:
                return Slow(name, str(shape), most, 0.0, took)
        elif _may_be_slow(call, shape) and (slow := _compare(name, call, shape)):
            return slow
    return None


def _may_be_slow(call: Callable[[str], Any], shape: Shape) -> bool:
    """Return whether a shorter text than the decisive one suggests slowness."""
    took = measure(call, shape.make(SMALL))
    # A quadratic one takes this much so many times for LARGE.
    if took <= FLOOR_SECONDS / (LARGE // SMALL) ** 2:
        return False
    tiny = min(measure(call, shape.make(TINY)) for _ in range(2))
    return took > MANY_TIMES * tiny


def _compare(name: str, call: Callable[[str], Any], shape: Shape) -> Slow | None:
    text = shape.make(LARGE)
    # What is quick for LARGE, whatever it takes for SMALL, is all that is wanted.
    if measure(call, text, FLOOR_SECONDS) <= FLOOR_SECONDS:
        return None
    for _ in range(2):
        small = min(measure(call, shape.make(SMALL)) for _ in range(3))
        most = max(FLOOR_SECONDS, MOST_TIMES * small)
        large = measure(call, text, most)
        if large <= most:
            return None
    return Slow(name, str(shape), LARGE, small, large)
