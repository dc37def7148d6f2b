"""Locks of requirements: each agrees with the file beside it."""

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chatsite.ops.checks import SAFE_VERSIONS

from .servers import ROOT

LOCKED = (
    "requirements/site",
    "requirements/signin",
    "requirements/saml",
    "requirements/mcp",
    "requirements/tracing",
    "requirements/models",
    "requirements/tests",
)
# A package, its hashes, and who brings it.
ENTRY = re.compile(r"(?m)^(\S.*?) \\\n((?:    --hash=.+\n)+)((?:    #.+\n)*)")
HASHES = re.compile(r"(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+")


def required(name):
    """The requirements of a file and of those that it names, by their names."""
    found = {}
    path = ROOT / f"{name}.txt"
    for line in path.read_text().splitlines():
        if line.startswith("-r "):
            other = (path.parent / line[3:]).resolve().relative_to(ROOT)
            found |= required(str(other.with_suffix("")))
        elif line and not line.startswith("#"):
            requirement = Requirement(line)
            found[canonicalize_name(requirement.name)] = requirement
    return found


def locked(name):
    """Return the requirements that pin each package: several where systems differ."""
    found = {}
    for pin, _, _ in ENTRY.findall((ROOT / f"{name}.lock").read_text()):
        found.setdefault(Requirement(pin).name, []).append(Requirement(pin))
    return found


def version(pin):
    (pinned,) = pin.specifier
    assert pinned.operator == "=="
    return pinned.version


@pytest.mark.parametrize("name", LOCKED)
class TestOneLock:
    def test_versions_are_in_the_ranges(self, name):
        pins = locked(name)
        wrong = [
            str(requirement)
            for package, requirement in required(name).items()
            for pin in pins.get(package) or [None]
            if pin is None or version(pin) not in requirement.specifier
        ]
        assert not wrong, f"make lock: {name}.lock has no version for {wrong}"

    def test_lock_has_all_that_is_required(self, name):
        """The installed packages of a lock include all that it requires."""
        pins = locked(name)
        extras = {
            package: requirement.extras
            for package, requirement in required(name).items()
        }
        missing = [
            f"{package}: {line}"
            for package in pins
            for line in installed_requires(package)
            if applies(Requirement(line), extras.get(package, ()))
            and canonicalize_name(Requirement(line).name) not in pins
        ]
        assert not missing, f"make lock: {name}.lock lacks {missing}"

    def test_lock_has_nothing_that_is_not_required(self, name):
        text = (ROOT / f"{name}.lock").read_text()
        asked = {
            Requirement(pin).name
            for pin, _, via in ENTRY.findall(text)
            if ".txt" in via
        }
        assert asked == set(required(name)), f"make lock: {name}.lock is another's"

    def test_every_line_has_hashes_and_no_address(self, name):
        text = (ROOT / f"{name}.lock").read_text()
        rest = ENTRY.sub("", text)
        assert not [line for line in rest.splitlines() if not line.startswith("#")]
        assert all(HASHES.fullmatch(hashes) for _, hashes, _ in ENTRY.findall(text))
        assert "://" not in text


def installed_requires(package):
    try:
        return metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return []


def applies(requirement, extras):
    marker = requirement.marker
    return marker is None or any(
        marker.evaluate({"extra": extra}) for extra in (*extras, "")
    )


@pytest.mark.parametrize("name", LOCKED)
def test_locks_have_the_versions_of_the_tests(name):
    tests = locked("requirements/tests")
    here = locked(name)
    alone = here if name == "requirements/models" else {}
    assert {
        package: pins
        for package, pins in here.items()
        if pins != tests.get(package, alone.get(package))
    } == {}


def test_versions_with_known_holes_are_not_locked():
    pins = locked("requirements/site")
    for name, safe in SAFE_VERSIONS.items():
        (pin,) = pins[canonicalize_name(name)]
        assert tuple(map(int, version(pin).split("."))) >= safe
