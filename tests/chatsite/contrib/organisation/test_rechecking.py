"""A provider is asked again about those who have logged in: who loses a group there, or
the account, is out here without another log-in."""

import secrets

import pytest

from tests.patience import wait_for

from .conftest import PASSWORD

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
ENV = {"TURN_SWEEP_SECONDS": "0.2"}
LOGIN = "/accounts/oidc/offline/login/"


@pytest.fixture
def enter(browse, idp):
    """enter(**claims) -> a browser of someone new who has just logged in, and their
    name."""

    def log_in(**claims):
        browser, name = browse(), secrets.token_hex(4)
        person = {"sub": name, "preferred_username": name, "groups": ["chat"]}
        idp.reset(**{**person, **claims})
        assert browser.enter(LOGIN).status_code == 302
        return browser, name

    return log_in


@pytest.fixture
def recheck(ask):
    """Let the time come at which the provider is asked about this user."""
    whose = "user_id = (SELECT id FROM auth_user WHERE username = ?)"
    statement = f"UPDATE signin_membership SET recheck_at = '2000-01-01' WHERE {whose}"  # noqa: S608
    return lambda name: ask(statement, name)


def account(ask, name):
    columns = "is_active, is_staff, refresh_token, recheck_at"
    [found] = ask(
        f"SELECT {columns} FROM auth_user u JOIN signin_membership m "  # noqa: S608
        "ON m.user_id = u.id WHERE u.username = ?",
        name,
    )
    return dict(zip(columns.split(", "), found, strict=True))


def await_new_token(ask, name, before):
    wait_for(lambda: account(ask, name)["refresh_token"] not in ("", before))
    return account(ask, name)["refresh_token"]


def test_a_member_stays_and_is_asked_about_with_the_new_token(enter, recheck, ask, idp):
    browser, name = enter()
    token = account(ask, name)["refresh_token"]
    for _ in range(2):
        recheck(name)
        token = await_new_token(ask, name, token)
    assert idp.asked_again == 2
    assert account(ask, name)["recheck_at"] > "2026"
    assert browser.is_in


def test_lost_group_locks_the_account_until_it_returns(enter, recheck, ask, idp):
    browser, name = enter()
    idp.claims["groups"] = []
    recheck(name)
    wait_for(lambda: not account(ask, name)["is_active"])
    assert not browser.is_in
    assert (account(ask, name)["refresh_token"], account(ask, name)["recheck_at"]) == (
        "",
        None,
    )
    idp.claims["groups"] = ["chat"]
    assert browser.enter(LOGIN).status_code == 302
    assert browser.is_in
    assert account(ask, name)["refresh_token"]


def test_lost_staff_group_removes_its_rights(enter, recheck, ask, idp):
    browser, name = enter(groups=["chat", "reviewers"])
    assert browser.get("/admin/memory/conversation/").status_code == 200
    idp.claims["groups"] = ["chat"]
    recheck(name)
    wait_for(lambda: not account(ask, name)["is_staff"])
    assert browser.get("/admin/memory/conversation/").status_code == 302
    assert browser.is_in


def test_whom_the_provider_knows_no_more_is_out(enter, recheck, ask, idp):
    browser, name = enter()
    idp.refresh_tokens.clear()
    recheck(name)
    wait_for(lambda: not account(ask, name)["is_active"])
    assert not browser.is_in


def test_a_key_that_is_gone_ends_the_session(enter, recheck, ask):
    """The account, about which no provider can be asked, takes part in nothing until
    the next log-in."""
    _browser, name = enter()
    ask("UPDATE signin_membership SET refresh_token = 'of another key'")
    recheck(name)
    wait_for(lambda: not account(ask, name)["is_active"])


@pytest.mark.parametrize(
    "refusal",
    [
        (500, {"error": "server_error"}),
        (401, {"error": "invalid_client"}),
        (429, {}),
        (200, {"access_token": "x", "id_token": "no token"}),
        (200, {"id_token": 7}),
        (200, []),
        (0, {}),
    ],
    ids=str,
)
def test_a_provider_that_says_nothing_of_the_person_shuts_no_one_out(
    enter, recheck, ask, idp, refusal
):
    browser, name = enter()
    token = account(ask, name)["refresh_token"]
    idp.refusal = refusal
    recheck(name)
    wait_for(lambda: idp.asked_again)
    idp.refusal = None
    recheck(name)
    await_new_token(ask, name, token)
    assert browser.is_in


@pytest.mark.parametrize(
    "claims", [{"groups": None}, {"groups": None, "_claim_names": {"groups": "s"}}]
)
def test_unknown_groups_change_nothing_and_keep_the_new_token(
    enter, recheck, ask, idp, claims
):
    browser, name = enter(groups=["chat", "reviewers"])
    token = account(ask, name)["refresh_token"]
    idp.claims |= claims
    for _ in range(2):
        recheck(name)
        token = await_new_token(ask, name, token)
    found = account(ask, name)
    assert (found["is_active"], found["is_staff"], browser.is_in) == (1, 1, True)


def test_an_answer_about_another_person_changes_nothing(enter, recheck, ask, idp):
    browser, name = enter()
    idp.claims |= {"sub": "another", "groups": []}
    recheck(name)
    wait_for(lambda: idp.asked_again)
    # The fake has taken the token: the next time it knows no user by it.
    idp.refusal = (500, {})
    recheck(name)
    wait_for(lambda: idp.asked_again == 2)
    assert account(ask, name)["is_active"]
    assert browser.is_in


def test_the_token_is_sealed(enter, ask, idp):
    _browser, name = enter()
    kept = account(ask, name)["refresh_token"]
    assert len(kept) > 40
    assert not [token for token in idp.refresh_tokens if token in kept]


def test_a_provider_that_gives_no_token_lets_no_one_in(browse, idp):
    """The operator sees it with the first log-in, and not when someone has left."""
    browser = browse()
    assert browser.enter("/accounts/oidc/asked/login/").status_code == 403
    assert not browser.is_in


def test_provider_without_recheck_stores_no_token(browse, ask, idp):
    browser, name = browse(), secrets.token_hex(4)
    idp.reset(sub=name, preferred_username=name, groups=["chat"])
    assert browser.enter("/accounts/oidc/corp/login/").status_code == 302
    found = account(ask, name)
    assert (found["refresh_token"], found["recheck_at"]) == ("", None)


def test_disconnected_account_is_not_rechecked(browse, recheck, ask, idp):
    name = secrets.token_hex(4)
    browser, again = browse(), browse()
    idp.reset(sub=name, preferred_username="bob", groups=["chat"])
    browser.log_in("bob")
    password = {"offline-password": PASSWORD}
    browser.get(browser.leave("/account/connect/offline/", "/account/", **password))
    assert again.enter(LOGIN).status_code == 302
    assert account(ask, "bob")["refresh_token"]
    browser.post("/account/disconnect/offline/", "/account/", **password)
    found = account(ask, "bob")
    assert (found["refresh_token"], found["recheck_at"]) == ("", None)
