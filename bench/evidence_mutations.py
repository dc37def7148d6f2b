"""Changed files of evidence, each checked by `verify.py` and by `verify.html`.

`EXTRAS=evidence python -m bench.evidence_mutations sqlite` prints how many of
10,000 each verifier accepts, and how many answers differ from those of this Python: in
the verdict, or in the parts that are named as changed. `PYTHONS` names more, which run
`verify.py` with the packages that they have, so perhaps without cryptography.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.servers import ROOT, find_chromium

from . import databases, long_conversation

SEED, COUNT, MESSAGES = 55, 10_000, 24
BATCH = 250
FOLDER = ROOT / "chatsite/contrib/evidence"
# The first line of the input has the keys, each further line a file.
PROGRAM = """
import base64, json, platform, sys
sys.path.insert(0, sys.argv[1])
from verify import verify
with open(sys.argv[2]) as lines:
    read = map(base64.b64decode, lines)
    keys = next(read)
    answers = [verify(data, keys) for data in read]
try:
    import cryptography
    name = f"cryptography {cryptography.__version__}"
except ImportError:
    name = "no package"
print(json.dumps([f"Python {platform.python_version()}, {name}", answers]))
"""
CHECK = """async ([keys, files]) => {
    const read = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const answers = [];
    for (const file of files)
        answers.push((await verify(read(file), read(keys))).slice(0, 2));
    return answers;
}"""
Answers = list[tuple[bool, str]]


def make_files() -> tuple[bytes, list[bytes]]:
    """Return the keys, and a right file with its changed ones."""
    from django.contrib.auth import get_user_model

    from chatsite.contrib.evidence import contents, signing_keys
    from tests.chatsite.contrib.evidence.mutations import Mutations

    site = "https://bench.example"
    owner = get_user_model().objects.create_user("evidence")
    row = long_conversation.make(owner, MESSAGES)
    data = signing_keys.sign_file(contents.collect_file(row, None), site)
    mutations, files = Mutations(data, SEED), [data]
    while len(files) <= COUNT:
        if (changed := mutations.make()) != data:
            files.append(changed)
    return json.dumps(signing_keys.publish_keys(site)).encode(), files


def run_python(python: str, file: Path) -> tuple[str, Answers]:
    command = [python, "-c", PROGRAM, str(FOLDER), str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    name, answers = json.loads(done.stdout)
    return name, [(is_right, text) for is_right, text in answers]


def run_browser(lines: list[str]) -> tuple[str, Answers]:
    keys, *files = lines
    with sync_playwright() as playwright:
        options = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        page = browser.new_page()
        page.goto((FOLDER / "verify.html").as_uri())
        answers = []
        for start in range(0, len(files), BATCH):
            answers += page.evaluate(CHECK, [keys, files[start : start + BATCH]])
        return f"Chromium {browser.version}", [(one, text) for one, text in answers]


def count_differences(answers: Answers, others: Answers) -> int:
    """Count other verdicts, and other names of what was changed."""
    pairs = zip(answers, others, strict=True)
    return sum(
        one[0] != other[0] or (other[1].startswith("changed: ") and one != other)
        for one, other in pairs
    )


def report() -> None:
    keys, files = make_files()
    lines = [base64.b64encode(each).decode() for each in (keys, *files)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "files"
        file.write_text("\n".join(lines))
        pythons = (sys.executable, *os.environ.get("PYTHONS", "").split())
        found = [run_python(python, file) for python in pythons]
    found.append(run_browser(lines))
    first = found[0][1]
    print(f"{COUNT:,} changed files of {len(files[0]) // 1000} kB, seed {SEED}")
    for name, answers in found:
        if not answers[0][0]:
            raise RuntimeError(f"{name} refuses the right file: {answers[0][1]}")
        accepted = sum(is_right for is_right, _ in answers[1:])
        other = count_differences(answers, first)
        print(f"{name:38} {accepted} accepted, {other} other answers")


if __name__ == "__main__":
    databases.run("bench.evidence_mutations", report)
