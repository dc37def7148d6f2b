"""A site with a provider of identities, and browsers that log in there."""

import html
import json
import re
import sqlite3

import pytest
import requests

from tests.databases import copy_sqlite
from tests.fakes.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.patience import PATIENCE
from tests.servers import Site

PASSWORD = "correct horse battery"
TIMEOUT = 60 * PATIENCE


class Browser:
    """Goes where a user would go, and takes each redirect by hand."""

    def __init__(self, site):
        self.site, self.session = site, requests.Session()

    def get(self, path, **options):
        url = path if path.startswith("http") else self.site.url + path
        options = {"allow_redirects": False, "timeout": TIMEOUT, **options}
        return self.session.get(url, **options)

    def post(self, path, at="/accounts/login/", **fields):
        page = self.get(at).text
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
        data = {"csrfmiddlewaretoken": token, **fields}
        return self.session.post(
            self.site.url + path, data, allow_redirects=False, timeout=TIMEOUT
        )

    def log_in(self, name, password=PASSWORD):
        return self.post("/accounts/login/", username=name, password=password)

    def leave(self, path="/accounts/oidc/corp/login/", at="/accounts/login/", **fields):
        """Follow the page to the provider; return the address that leads back."""
        page = self.post(path, at, **fields).text
        target = html.unescape(re.search(r'content="0; url=([^"]+)"', page)[1])
        return self.get(target).headers["Location"]

    def enter(self, *path, **fields):
        return self.get(self.leave(*path, **fields))

    @property
    def is_in(self):
        return self.get("/account/").status_code == 200


def call_commands(site, *commands):
    """Several commands of manage.py in one process; starting one takes a second."""
    code = "from django.core.management import call_command as call"
    code += f"\nfor each in {commands!r}: call(*each)"
    site.manage("shell", "--no-imports", "-c", code)


@pytest.fixture(scope="module")
def idp():
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def organisation(idp, tmp_path_factory, request):
    """The site; one for the tests of a file, with the settings of its ENV."""
    folder = tmp_path_factory.mktemp("organisation")
    corp = {
        **{"id": "corp", "name": "Example Corp", "issuer": idp.url},
        **{"client_id": CLIENT, "client_secret": SECRET, "members": ["chat"]},
        "staff": {"reviewers": ["metadata", "content"], "auditors": ["metadata"]},
    }
    open_to_all = {**corp, "id": "open", "members": [], "create_accounts": False}
    told = {**corp, "id": "told", "members": [], "userinfo": True}
    asked = {**corp, "id": "asked", "recheck_seconds": 30}
    nested = {**corp, "id": "nested", "groups_claim": "realm_access.roles"}
    offline = {**asked, "id": "offline", "scopes": ["openid", "offline_access"]}
    listed = folder / "providers.json"
    providers = [corp, open_to_all, told, asked, nested, offline]
    listed.write_text(json.dumps({"providers": providers}))
    database = copy_sqlite(folder / "db.sqlite3")
    env = {"DATABASE_URL": database, "SIGNIN_PROVIDERS": str(listed), "DEBUG": "true"}
    site = Site({**env, **getattr(request.module, "ENV", {})})
    people = [("create_user", name, PASSWORD) for name in ("alice", "bob")]
    call_commands(site, ("migrate", "--verbosity", "0"), *people)
    with site:
        yield site


@pytest.fixture
def browse(organisation, idp):
    """browse() -> a new browser; the provider knows a member called alice."""
    idp.reset(groups=["chat"])
    return lambda: Browser(organisation)


@pytest.fixture
def ask(organisation):
    """ask(sql, *values) -> rows of the site's database, as they are."""

    def read(statement, *values):
        path = organisation.env["DATABASE_URL"].removeprefix("sqlite:///")
        with sqlite3.connect(path, timeout=30) as connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    return read
