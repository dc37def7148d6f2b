"""The bill of materials and the licenses of what the site runs with."""

import json
import re

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import sbom

from .servers import ROOT

PERMISSIVE = re.compile(
    "MIT|0?BSD|Apache|PSF|Python Soft|HPND|ISC|CNRI|TCL|Unlicense|The Unlicense|Other/"
)
LOCKS = (
    "requirements/site.lock",
    "requirements/signin.lock",
    "requirements/saml.lock",
    "requirements/mcp.lock",
)
MERMAID = "vendor/mermaid/mermaid.tiny.js"
VENDORED = {"vendor/inter": "Inter", MERMAID: "Mermaid"}


def parts(license):
    return filter(None, re.split(r" AND | OR |, |[()]", license))


@pytest.fixture(params=LOCKS)
def lock(request):
    return ROOT / request.param


def test_bill_is_valid_and_has_all_that_is_installed(lock, tmp_path):
    sbom.main(lock, tmp_path)
    text = (tmp_path / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = {each["name"] for each in json.loads(text)["components"]}
    assert found == {*sbom.read_lock(lock), *VENDORED.values()}
    assert {"django", "psycopg-binary", "zope-interface"} <= found
    licenses = (tmp_path / "licenses.txt").read_text()
    assert licenses.count("\n") == len(found) - len(VENDORED)
    assert "psycopg-pool 3." in licenses
    assert "unknown" not in licenses


def test_package_is_required_by_another(lock):
    names = {*sbom.read_lock(lock), *VENDORED.values()}
    tree = {
        each["ref"]: each["dependsOn"] for each in sbom.build_sbom(lock)["dependencies"]
    }
    reached, waiting = set(), ["windowpane"]
    while waiting:
        new = set(tree[waiting.pop()]) - reached
        reached |= new
        waiting += new
    assert {VENDORED.get(name, name) for name in reached} == names


def test_the_notice_names_every_license_that_is_not_permissive(lock):
    notice = (ROOT / "NOTICE").read_text()
    assert [
        name
        for name in sbom.read_lock(lock)
        if not all(map(PERMISSIVE.match, parts(sbom.read_license(name)[0])))
        and not re.search(rf"\b{name.replace('-', '[-.]')}\b", notice)
    ] == []


def test_vendored_source_has_the_named_version():
    assert f'"{sbom.MERMAID["version"]}"' in (ROOT / MERMAID).read_text()


def test_version_different_from_the_lock_is_refused(tmp_path):
    text = (ROOT / "requirements/site.lock").read_text()
    other = re.sub("(?m)^django==.+? ", "django==5.2 ", text)
    (tmp_path / "other.lock").write_text(other)
    with pytest.raises(SystemExit, match="django==5.2 is wanted, .+: make setup"):
        sbom.read_lock(tmp_path / "other.lock")
