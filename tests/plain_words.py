"""Count names and texts that break the rules for plain words of CONTRIBUTING.md.

`python -m tests.plain_words [FOLDER] [-v]` prints a table per area, or each finding.
"""

import ast
import functools
import io
import re
import sys
import tokenize
from collections import Counter
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("chatsite", "memory")


def words_of(text):
    return frozenset(text.split())


# A docstring that begins so has no subject of its own.
HEADLESS = re.compile(
    r"(what|whether|which|who|whose|whom|how|why|where|when|while|of|as|by|from|for"
    r"|with|without|in|on|at|to|until|unless|after|before|once|so|if|its|his|their"
    r"|theirs|those|these|that|they|it|told|nothing|something|none|not|no|one that"
    r"|one who|one of|the same)\b",
    re.IGNORECASE,
)
# The private words, and the field's words for them in CONTRIBUTING.md.
PRIVATE = re.compile(
    r"\b(leaf|doors?|wires?(?! formats?)|(?<!small )talks?|told|hears?|heard|hall"
    r"|deeds?|dearer"
    r"|swept|anew|whoever|anyone|nobody|somebody|no one|one's own|for ever|stands? for"
    r"|takes? away|brought along|sent elsewhere|said at the start|can not"
    # Scripts read a column of a CSV file by its name.
    r"|(?<!month,)(?<!first )(?<!second )(?<!third )(?<!grammatical )person)\b",
    re.IGNORECASE,
)
# Nouns that end as participles do.
NOUNS = words_of("Feed Seed Embed Speed Need Setting Thing String Warning")
IRREGULAR = words_of(
    "Kept Sent Told Found Made Seen Left Held Known Given Taken Shown Chosen Written"
    " Begun Done Gone Lost Cut Said Met Spent Bound Built Brought Fallen"
)
# Names that Django and LangChain expect of a class.
FRAMEWORK_CLASSES = {"Meta", "Command", "State", "Migration", "Media"}
FRAMEWORK_METHODS = words_of(
    "ready handle save clean delete lookups queryset format get post put patch head"
    " options dispatch check invoke ainvoke astream stream connect disconnect receive"
    " emit filter resolve run close aclose feed render encode decode write read"
    " authenticate login validate sync verify harden summary"
    # A finder of Django's static files.
    " BundleFinder.find BundleFinder.list"
    # A loader of psycopg.
    " UtcLoader.load"
)
# A test's name begins with its subject: no pronoun, preposition or negation.
NO_SUBJECT = words_of(
    "it its they them their he she his this that these those there here what who which"
    " whoever whose how why when where while nothing no nobody none neither nor not"
    " without with of on in at by for from to as after before until between under over"
    " through if so then too also even only both all others another one everything"
    " something anything"
)
GETTEXT = re.compile(r"_|(translation\.)?[np]*gettext(_lazy)?")
TEXTS = {".md", ".html", ".js", ".css"}
FOLDERS = ("chatsite", "memory", "docs", "templates", "static", "bench", "deploy")
NOT_OURS = ("CHANGELOG.md", "vendor", "locale", "node_modules", "licenses")
KINDS = ("headless", "participles", "namesakes", "one_word", "words", "tests")


def area_of(path):
    """Return the folder whose row of the table counts this path."""
    parts = path.parts[:-1]
    depth = {"contrib": 3, "features": 3}.get(parts[1] if len(parts) > 1 else "", 2)
    if parts[:2] == ("tests", "chatsite"):
        depth = 4 if parts[2:3] in (("contrib",), ("features",)) else 3
    elif parts[:2] == ("tests", "memory"):
        depth = 3
    return "/".join(parts[:depth]) or "."


@functools.cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def python_files():
    for folder in (*CODE, "tests", "bench", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def text_files():
    """Yield the pages, templates, scripts and styles that are written here."""
    found = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")]
    found += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted(found):
        if path.suffix in TEXTS and not {*NOT_OURS} & {*path.parts}:
            yield path


def is_product(path):
    return path.relative_to(ROOT).parts[0] in CODE


def docstrings_of(path):
    """Yield the line and the text of each docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in nodes_of(path):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def comments_of(path):
    with io.StringIO(path.read_text()) as lines:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def translated_texts_of(path):
    """Yield the line and the text of each string that is marked for translation."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and GETTEXT.fullmatch(ast.unparse(node.func)):
            for each in node.args:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.lineno, each.value


def find_headless():
    for path in python_files():
        for line, text in docstrings_of(path):
            if HEADLESS.match(text):
                yield path, line, text.splitlines()[0]


def classes_of(path):
    return [n for n in nodes_of(path) if isinstance(n, ast.ClassDef)]


def is_participle(name):
    word = re.findall(r"[A-Z][a-z]*", name)[-1:]
    if not word or word[0] in NOUNS:
        return False
    return word[0] in IRREGULAR or bool(re.search(r"(ed|ing)$", word[0]))


def find_participles():
    for path in filter(is_product, python_files()):
        for node in classes_of(path):
            if is_participle(node.name):
                yield path, node.lineno, node.name


def find_namesakes():
    classes = [
        (path, node.lineno, node.name)
        for path in filter(is_product, python_files())
        for node in classes_of(path)
        if node.name not in FRAMEWORK_CLASSES
    ]
    names = Counter(name for _, _, name in classes)
    yield from (each for each in classes if names[each[2]] > 1)


def methods_of(node):
    """Return the methods of a class that are called, not read as attributes."""
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = {ast.unparse(mark) for mark in each.decorator_list}
            is_attribute = any("property" in mark for mark in marks)
            if not each.name.startswith("_") and not is_attribute:
                yield each


def find_methods():
    """Yield path, line and name of each method of a public class."""
    for path in filter(is_product, python_files()):
        for node in classes_of(path):
            if not node.name.startswith("_"):
                for method in methods_of(node):
                    yield path, method.lineno, f"{node.name}.{method.name}"


def find_one_word():
    for path, line, name in find_methods():
        method = name.rpartition(".")[2]
        if "_" not in method and not {method, name} & FRAMEWORK_METHODS:
            yield path, line, name


def find_words():
    for path in python_files():
        texts = (docstrings_of(path), comments_of(path), translated_texts_of(path))
        for line, text in chain.from_iterable(texts):
            for match in PRIVATE.finditer(text):
                yield path, line, match[0]
    for path in text_files():
        # The table of these words itself.
        words = re.sub(r"(?m)^\| write \|.*(\n\|.*)+", "", path.read_text())
        # The names of addresses are no text.
        words = re.sub(r"{% url \S+", "", words)
        for line, text in enumerate(words.splitlines(), 1):
            for match in PRIVATE.finditer(text):
                yield path, line, match[0]


def find_tests():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in nodes_of(path):
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            if is_function and node.name.startswith("test_"):
                words = node.name.split("_")[1:]
                if words[0] in {"a", "an", "the"}:
                    words = words[1:]
                if not words or words[0] in NO_SUBJECT:
                    yield path, node.lineno, node.name


def find_all():
    """Yield kind, path relative to the root, line and text of every finding."""
    found = dict(
        zip(
            KINDS,
            (
                find_headless,
                find_participles,
                find_namesakes,
                find_one_word,
                find_words,
                find_tests,
            ),
            strict=True,
        )
    )
    for kind, find in found.items():
        for path, line, text in find():
            yield kind, path.relative_to(ROOT), line, text


def count_by_area():
    """Return {area: {kind: findings}}, without zeros."""
    counts = {}
    for kind, path, _, _ in find_all():
        counts.setdefault(area_of(path), Counter())[kind] += 1
    return {area: dict(counts[area]) for area in sorted(counts)}


def main():
    folder = next((each for each in sys.argv[1:] if not each.startswith("-")), "")
    if "-v" in sys.argv:
        for kind, path, line, text in find_all():
            if str(path).startswith(folder):
                print(f"{path}:{line} {kind}: {text}")  # noqa: T201
        return
    total = Counter()
    for area, counts in count_by_area().items():
        if area.startswith(folder):
            total.update(counts)
            print(area, *(f"{kind} {counts.get(kind, 0)}" for kind in KINDS))  # noqa: T201
    print("all", *(f"{kind} {total[kind]}" for kind in KINDS))  # noqa: T201


if __name__ == "__main__":
    main()
