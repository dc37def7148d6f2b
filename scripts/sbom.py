"""The bill of materials of a lock, from what is installed.

`sbom LOCK FOLDER` writes the bill (CycloneDX, sbom.cdx.json) and licenses.txt.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"(?m)^(\S.*?) \\\n((?:    --hash=.+\n)+)")
# What comes with the source, as NOTICE says.
INTER: dict[str, Any] = {
    "type": "file",
    "bom-ref": "vendor/inter",
    "name": "Inter",
    "licenses": [{"license": {"id": "OFL-1.1"}}],
}
MERMAID: dict[str, Any] = {
    "type": "library",
    "bom-ref": "vendor/mermaid/mermaid.tiny.js",
    "name": "Mermaid",
    "version": "11.17.2",
    "purl": "pkg:npm/%40mermaid-js/tiny@11.17.2",
    "licenses": [{"license": {"id": "MIT"}}],
}
VENDORED = [INTER, MERMAID]


def applies(requirement: Requirement, extra: str = "") -> bool:
    marker = requirement.marker
    return marker is None or marker.evaluate({"extra": extra})


def read_lock(lock: Path) -> dict[str, list[str]]:
    """Return what the lock installs here, with the hashes of its files."""
    found = {}
    for pin, hashes in ENTRY.findall(lock.read_text(encoding="utf-8")):
        requirement = Requirement(pin)
        if applies(requirement):
            here = metadata.version(requirement.name)
            if here not in requirement.specifier:
                raise SystemExit(f"{pin} is wanted, {here} is installed: make setup")
            found[requirement.name] = re.findall("sha256:([0-9a-f]+)", hashes)
    return found


def read_ranges(path: Path) -> Iterable[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from read_ranges(path.parent / line[3:])
        elif line and not line.startswith("#"):
            yield line


def find_needs(
    lines: Iterable[str], extras: Iterable[str] = ("",)
) -> set[tuple[str, str]]:
    """Return the packages that requirements name, each once for every extra."""
    return {
        (canonicalize_name(needed.name), each)
        for needed in map(Requirement, lines)
        for extra in extras
        if applies(needed, extra)
        for each in ("", *needed.extras)
    }


def draw_tree(top: set[tuple[str, str]]) -> dict[str, set[str]]:
    """Return which package needs which others."""
    tree: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = list(top)
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            needs = find_needs(metadata.requires(name) or (), (extra,))
            tree.setdefault(name, set()).update(needed for needed, _ in needs)
            waiting += needs
    return tree


def read_license(name: str) -> tuple[str, bool]:
    """Return the license, and if it is an expression of SPDX."""
    told = metadata.metadata(name)
    if expression := told.get("License-Expression"):
        return expression, True
    classified = [
        line.rpartition(" :: ")[2]
        for line in told.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    return ", ".join(classified) or (told.get("License") or "unknown").splitlines()[
        0
    ], False


def describe(name: str, hashes: list[str]) -> dict[str, Any]:
    version = metadata.version(name)
    purl = f"pkg:pypi/{name}@{version}"
    text, is_expression = read_license(name)
    files = [{"alg": "SHA-256", "content": each} for each in hashes]
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [
            {"expression": text} if is_expression else {"license": {"name": text}}
        ],
        # The files of this version, of which one is installed.
        "externalReferences": [{"type": "distribution", "url": purl, "hashes": files}],
    }


def build_sbom(lock: Path) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    site = {
        "type": "application",
        "bom-ref": "windowpane",
        "name": "windowpane",
        "version": project["version"],
        "licenses": [{"license": {"id": "MIT"}}],
    }
    top = find_needs(read_ranges(lock.with_suffix(".txt")))
    vendored = {each["bom-ref"] for each in VENDORED}
    tree = draw_tree(top) | {ref: set() for ref in vendored}
    tree["windowpane"] = {name for name, _ in top} | vendored
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": site,
        },
        "components": [describe(*each) for each in sorted(read_lock(lock).items())]
        + VENDORED,
        "dependencies": [
            {"ref": name, "dependsOn": sorted(brought)}
            for name, brought in sorted(tree.items())
        ],
    }


def main(lock: Path, folder: Path) -> None:
    sbom = build_sbom(lock)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom, indent=2) + "\n", "utf-8")
    packages = [each["name"] for each in sbom["components"] if each not in VENDORED]
    lines = [
        f"{name} {metadata.version(name)}: {read_license(name)[0]}" for name in packages
    ]
    (folder / "licenses.txt").write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(
        f"{len(packages)} packages: {folder}/sbom.cdx.json, licenses.txt\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
