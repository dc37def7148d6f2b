"""Release 0.1.0 upgraded to this one while people chat and staff look, time after time:
two processes behind nginx, PostgreSQL and Redis, in the steps of docs/deploy.md.

Each time begins with a database that 0.1.0 has made and filled, and ends with an audit.
Needs the history of the repository. Usage: python -m bench.upgrades [times] [people]
"""

import io
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.clients import Person
from tests.databases import Postgres
from tests.deploy.installation import Installation, Process, commands_of
from tests.faults.harness import QUICK, Truth, check_questions, check_screen, story_text
from tests.faults.viewers import Crowd, Viewer
from tests.patience import wait_for
from tests.servers import ROOT, Redis, Site

from . import environments
from .provider import running_provider

# Where CHANGELOG.md cuts 0.1.0.
OLD = "9b07c3f"
CONVERSATIONS, EXCHANGES = 100, 20
OWN_CONVERSATIONS = 2
# Seconds between two steps of an upgrade.
PAUSE = 3.0
# With the release's own code, so that every row is signed and has its turn.
FILL = """
from django.contrib.auth import get_user_model
from chatsite.ops.management.commands.seed_demo import _say
from memory import transcript
owner = get_user_model().objects.create_user("archive")
for number in range({conversations}):
    kept = transcript.create(owner, title=f"Kept {{number}}", model="demo")
    for place in range({exchanges}):
        said = f"On day {{place}} of plan {{number}} we meet at {{place}}:15."
        _say(kept, said, client_id=f"kept-{{place}}")
"""
# Pages of both releases. {path} is of the user's conversation.
PAGES = (
    *("/", "/?q=plan", "/account/", "/healthz", "{path}", "{path}context/"),
    *("{path}messages/", "{path}menu/", "{path}memory/summaries/"),
    *("{path}transcript.json", "{path}context.json", "{path}summaries.json"),
    *("{path}export.json", "{path}export.md", "{path}memory/find/?q=day"),
)
STAFF_PAGES = ("/admin/", "/admin/memory/conversation/", "/admin/memory/summary/")
STAFF_PAGES += ("/admin/memory/modelcall/", "/admin/chat/turn/")
ACTS = ("{path}pin/", "{path}unpin/", "{path}archive/", "{path}unarchive/")
ACTS += ("{path}memory/messages/1/pin/", "{path}memory/messages/1/unpin/")
STAFF = ("boss", "correct horse battery")
SETTINGS = {
    **{name: value for name, value in QUICK.items() if name != "TOOLS"},
    # One key for the database, whichever process signs its rows.
    "SECRET_KEY": uuid.uuid4().hex + uuid.uuid4().hex,
    "ENV_FILE": "",
    "SIGNUP_ENABLED": "true",
    "TITLES_ENABLED": "false",
}
FAULTS = ("not done", "failed pages", "socket errors", "failures", "deadlocks")
FAULTS += ("trouble",)
DEADLOCK = re.compile("deadlock detected.*?(?=STATEMENT)", re.DOTALL)
# Of a migration, beside what two requests can run into.
DEFINES = re.compile(r"\b(?:ALTER|CREATE|DROP|django_migrations)\b")
TROUBLE = re.compile(r"^\S+ \S+ (?:ERROR|CRITICAL) .*$", re.MULTILINE)
# 0.1.0 looks for a turn among those that wait, which can have ended since it asked for
# them, upgrade or not; and it does not see that a browser has gone.
OWN_ERROR = re.compile(
    r"Internal Server Error: (?P<path>/c/[^/]+/).* "
    r"\| ValueError in transcript_pane\.py:262 _views|/\.venv-0\.1\.0/.*RequestAborted"
)


class Release:
    """The code of a release, and the Python with what it needs."""

    def __init__(self, root: Path, python: str) -> None:
        self.root, self.python = root, python
        self.is_here = root == ROOT

    def run(self, process: "ReleaseProcess", *arguments: str) -> str:
        """Run its manage.py in the environment of a process."""
        if self.is_here:
            return process.manage(*arguments)
        done = subprocess.run(
            [self.python, "manage.py", *arguments],
            cwd=self.root,
            env=process.environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = f"{done.stdout}{done.stderr}"
            raise RuntimeError(f"manage.py {arguments} failed:\n{said}")
        return done.stdout


NEW = Release(ROOT, sys.executable)


def unpack_release(folder: Path, *, python: str = "") -> Release:
    """0.1.0 of the history; `python` has what it needs, or a new one gets it."""
    command = ["git", "-C", str(ROOT), "archive", OLD]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    own = ROOT / ".venv-0.1.0"
    made = python or environments.make(own, folder / "requirements.txt")
    return Release(folder, str(made))


class ReleaseProcess(Process):
    """One windowpane@PORT.service, of the release that it was started from."""

    release = NEW

    @property
    def root(self) -> Path:
        return self.release.root

    @property
    def is_warm(self) -> bool:
        return self.release.is_here

    def command(self) -> list[str]:
        (_python, *rest) = commands_of("windowpane@.service", str(self.port))[0]
        return [self.release.python, *rest]

    def launch(self) -> None:
        Site.launch(self)  # Process makes every start but the first a warm one.


class UpgradedSite(Installation):
    """The installation of docs/deploy.md, with 0.1.0 first."""

    def __init__(self, old: Release, **env: str) -> None:
        super().__init__(**env)
        self.old = old
        settings, ports = self.processes[0].env, self.nginx.upstreams
        self.processes = [ReleaseProcess(settings, port) for port in ports]
        for process in self.processes:
            process.release = old

    def release(self) -> None:
        for command in commands_of("windowpane-release.service")[1:]:
            self.old.run(self.processes[0], *command[2:])

    def upgrade_tables(self) -> None:
        for command in commands_of("windowpane-release.service"):
            NEW.run(self.processes[0], *command[2:])

    def mark_logs(self) -> None:
        self.marks = [len(each.log_path.read_text()) for each in self.processes]

    def read_logs(self) -> str:
        """Return the output of the processes since then."""
        pairs = zip(self.processes, self.marks, strict=True)
        return "".join(each.log_path.read_text()[mark:] for each, mark in pairs)


class Visits:
    """Someone who opens page after page, and clicks; what was no page is noted."""

    def __init__(self, person: Person, path: str, addresses: tuple[str, ...]) -> None:
        self.person, self.path, self.addresses = person, path, addresses
        self.statuses: Counter[int] = Counter()
        self.failed: list[tuple[int | str, str]] = []

    def walk(self, ended: threading.Event) -> None:
        number = 0
        while not ended.is_set():
            address = self.addresses[number % len(self.addresses)]
            number += 1
            self.visit(address.format(path=self.path))

    def visit(self, address: str) -> None:
        status: int | str = 200
        try:
            if address.endswith(("pin/", "archive/")):
                self.person.submit(address)
            else:
                self.person.get(address)
        except urllib.error.HTTPError as error:
            status = error.code
            error.close()
        except OSError as error:
            status = type(error).__name__
        self.statuses[status] += 1
        if status != 200:
            self.failed.append((status, address))


class Chatter:
    """Someone who waits for each reply and writes again."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer

    def talk(self, ended: threading.Event) -> None:
        while not ended.is_set():
            said = self.viewer.send(story_text(words=25, paces=(0.05, 0.01)))
            self.viewer.wait_end(said, 90)


class People:
    """All who are at the site meanwhile."""

    def __init__(self, site: UpgradedSite, count: int, stack: ExitStack) -> None:
        self.ended = threading.Event()
        self.visits, self.viewers, self.failures = [], [], []
        for number in range(count):
            person = Person(site, f"person{number}")
            cookies = (f"{each.name}={each.value}" for each in person.cookies)
            crowd = stack.enter_context(Crowd("; ".join(cookies)))
            paths = [person.create("langgraph") for _ in range(OWN_CONVERSATIONS)]
            self.viewers += [crowd.open([site], path) for path in paths]
            self.visits.append(Visits(person, paths[0], PAGES + ACTS))
        self.visits.append(Visits(sign_in(site), "", STAFF_PAGES))
        works = [each.walk for each in self.visits]
        works += [Chatter(viewer).talk for viewer in self.viewers]
        self.threads = [threading.Thread(target=self._run, args=[w]) for w in works]
        for thread in self.threads:
            thread.start()

    def _run(self, work: Any) -> None:
        try:
            work(self.ended)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            self.failures.append(error)

    def leave(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()


def sign_in(site: UpgradedSite) -> Person:
    """Sign in a member of staff, whose account a command has made."""
    boss = Person(site, f"visitor{uuid.uuid4().hex[:6]}")
    boss.cookies.clear()
    name, password = STAFF
    boss.post("/accounts/login/", username=name, password=password)
    return boss


class Upgrades:
    """One cluster, one old release, any number of upgrades."""

    def __init__(self, old: Release, postgres: Postgres, **env: str) -> None:
        self.old, self.postgres = old, postgres
        self.env = {**SETTINGS, **env}

    def fill(self, conversations: int = CONVERSATIONS) -> None:
        """The database that each upgrade begins with, made by the old release."""
        self.postgres.execute("CREATE DATABASE {}", "of_old")
        site = self.make_site(self.postgres.url("of_old"))
        self.old.run(site.processes[0], "migrate", "--verbosity", "0")
        if self.old.is_here:
            self.old.run(site.processes[0], "seed_demo")
        else:
            text = FILL.format(conversations=conversations, exchanges=EXCHANGES)
            self.old.run(site.processes[0], "shell", "-c", text)
        self.old.run(site.processes[0], "create_user", *STAFF, "--staff")

    def make_site(self, url: str) -> UpgradedSite:
        return UpgradedSite(self.old, **self.env, DATABASE_URL=url)

    @contextmanager
    def running(self, people: int) -> Iterator[tuple[UpgradedSite, People]]:
        with ExitStack() as stack:
            url = stack.enter_context(self.postgres.database("of_old"))
            site = stack.enter_context(self.make_site(url))
            yield site, People(site, people, stack)

    def run(self, people: int) -> dict[str, Any]:
        """One upgrade; what was seen of it."""
        self.logged = len(self.postgres.log_path.read_text())
        with self.running(people) as (site, crowd):
            try:
                seconds = self._upgrade(site, crowd)
            finally:
                crowd.leave()
            return {**seconds, **self._look_back(site, crowd)}

    def _upgrade(self, site: UpgradedSite, crowd: People) -> dict[str, float]:
        time.sleep(PAUSE)
        # What 0.1.0 runs into by itself is none of the upgrade.
        site.mark_logs()
        for visit in crowd.visits:
            visit.failed.clear()
        began = time.monotonic()
        site.upgrade_tables()
        tables = time.monotonic() - began
        time.sleep(PAUSE)
        for process in site.processes:
            process.terminate()
            process.release = NEW
            process.start()
            time.sleep(PAUSE)
        return {"tables": tables, "whole": time.monotonic() - began}

    def _look_back(self, site: UpgradedSite, crowd: People) -> dict[str, Any]:
        truth = Truth(site.processes[0].env["DATABASE_URL"])
        wait_for(lambda: not truth.unfinished(), 60, "every turn to end")
        rows = {row.client_id: row for row in truth.rows()}
        check_questions(truth, crowd.viewers)
        for viewer in crowd.viewers:
            for client_id in viewer.texts:
                check_screen(viewer, client_id, rows)
        summaries = truth.count("memory_summary")
        truth.close()
        deadlocks = DEADLOCK.findall(self.postgres.log_path.read_text()[self.logged :])
        trouble = TROUBLE.findall(site.read_logs())
        failed = [each for v in crowd.visits for each in v.failed]
        others, left = leave_out_own(failed, trouble)
        NEW.run(site.processes[0], "sign_history")
        return {
            "messages": sum(len(viewer.texts) for viewer in crowd.viewers),
            "not done": sum(row.state != "done" for row in rows.values()),
            "summaries": summaries,
            "pages": sum((visit.statuses for visit in crowd.visits), Counter()),
            "failed pages": left,
            "own failures": len(failed) - len(left),
            "socket errors": [each for v in crowd.viewers for each in v.errors],
            "failures": crowd.failures,
            "deadlocks": [each for each in deadlocks if DEFINES.search(each)],
            "own deadlocks": [each for each in deadlocks if not DEFINES.search(each)],
            "trouble": others,
            "audit": NEW.run(site.processes[0], "audit").strip(),
        }


def leave_out_own(
    failed: list[tuple[int | str, str]], trouble: list[str]
) -> tuple[list[str], list[tuple[int | str, str]]]:
    """The lines and the failed pages without those of errors that 0.1.0 has anyway."""
    left = list(failed)
    for line in trouble:
        path = (own := OWN_ERROR.search(line)) and own["path"]
        of_path = (e for e in left if path and e[0] == 500 and e[1].startswith(path))
        if found := next(of_path, None):
            left.remove(found)
    return [line for line in trouble if not OWN_ERROR.search(line)], left


def find_faults(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the visible faults of an upgrade, which must have none."""
    empty = {name: seen[name] for name in FAULTS if seen[name]}
    audit = {} if "clean" in seen["audit"] else {"audit": seen["audit"]}
    return {**empty, **audit}


@contextmanager
def prepared_upgrades(
    old: Release, conversations: int = CONVERSATIONS
) -> Iterator[Upgrades]:
    with running_provider() as provider, Redis() as redis, Postgres() as postgres:
        upgrades = Upgrades(
            old,
            postgres,
            OPENAI_BASE_URL=provider,
            OPENAI_API_KEY="sk-test",
            CHAT_MODEL="ok",
            REDIS_URL=redis.url,
        )
        upgrades.fill(conversations)
        yield upgrades


def describe_upgrade(number: int, seen: dict[str, Any]) -> str:
    pages, summaries = sum(seen["pages"].values()), seen["summaries"]
    return (
        f"{number}: tables in {seen['tables']:.0f} s, all in {seen['whole']:.0f} s; "
        f"{seen['messages']} messages, {seen['not done']} of them not answered; "
        f"{pages} pages, {len(seen['failed pages'])} failed, "
        f"{seen['own failures']} more as in 0.1.0 anyway; {summaries} summaries; "
        f"{len(seen['deadlocks'])} deadlocks, {len(seen['own deadlocks'])} of requests "
        f"alone; audit {seen['audit'][:80]}"
    )


def main(times: int = 10, people: int = 4) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared_upgrades(unpack_release(Path(folder))) as upgrades,
    ):
        faulty = 0
        for number in range(1, times + 1):
            seen = upgrades.run(people)
            faults = find_faults(seen)
            faulty += bool(faults)
            print(
                describe_upgrade(number, seen), *faults.items(), sep="\n  ", flush=True
            )
        print(f"{times - faulty} of {times} upgrades without a fault")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
