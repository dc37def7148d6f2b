"""Exports with random damage: each file ends done or refused, never in an error of the
site; the audit stays clean, and what was taken is exported and imported again.

FUZZ_SEED repeats a run, FUZZ_ROUNDS makes it longer.
"""

import io
import json
import os
import random
import zipfile
from copy import deepcopy

from django.core.serializers.json import DjangoJSONEncoder

from chatsite.features.importing.exporting.as_markdown import write_markdown
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files.reading import ImportFileError
from memory import library

from ...contrib.archives.archives import make_archive
from .test_importing import (
    CLAUDE,
    chatgpt,
    take,
    violations,
)

# The same in every run of the suite; another by hand tries other files.
SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "60"))
ODD = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, -0.0),
    *("", " ", "x", "\0", "\ud800", "\u200b", "é" * 70_000, "a\r\nb", "2026-01-01"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "done", "0" * 64),
    *([], [[]], [None], ["x"], [[1, 2]], [["1", "2"]], [1] * 600, {}, {"a": {}}),
    *({"system": ["x"]}, {"": ""}, {"format": 1}, {"preset": "layered"}),
)


def nest(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def places(value):
    """Every container of the file with each of its keys."""
    found, waiting = [], [value]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        found += [(each, key) for key in keys]
        waiting += [each[key] for key in keys if isinstance(each[key], dict | list)]
    return found


def damage(chance, value):
    """Change some places: another value, none, twice, or that of another place."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        known = places(value)
        if not known:
            return
        holder, key = chance.choice(known)
        what = chance.randrange(6)
        if what <= 2:
            holder[key] = deepcopy(chance.choice(ODD))
        elif what == 3:
            del holder[key]
        elif what == 4:
            other, name = chance.choice(known)
            holder[key] = deepcopy(other[name])
        elif isinstance(holder, list):
            holder.insert(chance.randrange(len(holder) + 1), deepcopy(holder[key]))
        else:
            holder[key] = nest(chance.choice((5, 19, 30, 70, 300)))


def pack(chance, data):
    buffer = io.BytesIO()
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        name = chance.choice(("conversations.json", "a/conversations.json", "x.html"))
        archive.writestr(name, data)
    return buffer.getvalue()


def tear(chance, data):
    """Bytes that are missing, doubled or other than they were."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 2, 8))):
        at, length = chance.randrange(len(data) + 1), chance.choice((1, 4, 30))
        what = chance.randrange(4)
        if what == 0:
            del data[at:]
        elif what == 1:
            data[at : at + length] = chance.randbytes(length)
        elif what == 2:
            data[at:at] = data[at : at + length]
        else:
            data[at : at + 4] = chance.choice((b"\xff" * 4, b"\0" * 4, b'{"":'))
    return bytes(data)


def make_file(chance, sources):
    value = deepcopy(chance.choice(sources))
    if chance.random() < 0.75:
        damage(chance, value)
    try:
        data = json.dumps(value).encode()
    except RecursionError:  # one nest in another
        data = b'{"a":' * 960 + b"1" + b"}" * 960
    if chance.random() < 0.3:
        data = pack(chance, data)
    return tear(chance, data) if chance.random() < 0.3 else data


def check(user, made):
    value = json.loads(json.dumps(export_thread(made), cls=DjangoJSONEncoder))
    assert write_markdown(made)
    library.erase_conversation(made)
    [again] = take(user, {"conversations": [value]}).imported
    assert json.dumps(export_thread(again), cls=DjangoJSONEncoder)
    library.erase_conversation(again)


def test_fuzzed_files_cause_no_error_of_the_site(alice, source, exported):
    library.erase_conversation(source)
    seed = SEED
    print(f"FUZZ_SEED={seed}")  # noqa: T201
    chance = random.Random(seed)
    sources = [exported, [chatgpt()], [CLAUDE], {"conversations": [exported, CLAUDE]}]
    sources += [[make_archive(number)[1]] for number in range(6)]
    taken = 0
    for number in range(ROUNDS):
        data = make_file(chance, sources)
        try:
            outcome = take(alice, data)
        except ImportFileError:
            continue
        for made in outcome.imported:
            assert violations() == [], f"file {number}"
            check(alice, made)
            taken += 1
    assert violations() == []
    assert taken > ROUNDS / 20
