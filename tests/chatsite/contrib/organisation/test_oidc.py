"""Log-in with a provider of identities, and answers of one that prove nothing."""

import secrets

import jwt
import pytest

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
REFUSED = "You could not be logged in"


def new_person(idp, **claims):
    """Someone whom the site has not seen."""
    sub = secrets.token_hex(4)
    values = {"sub": sub, "preferred_username": f"p{sub}", "groups": ["chat"]}
    idp.reset(**{**values, **claims})
    return f"p{sub}"


def account(ask, name):
    columns = "id, email, is_staff, is_active, password"
    statement = f"SELECT {columns} FROM auth_user WHERE username = ?"  # noqa: S608
    found = ask(statement, name)
    return dict(zip(columns.split(", "), found[0], strict=True)) if found else None


def refused(browser, *path):
    answer = browser.enter(*path)
    assert answer.status_code == 403
    assert REFUSED in answer.text
    assert not browser.is_in
    return answer


class TestLogIn:
    def test_log_in_creates_an_account_and_reuses_it(self, browse, idp, ask):
        name = new_person(idp, email="p@example.org", email_verified=True)
        first, again = browse(), browse()
        assert first.enter().headers["Location"] == "/"
        assert first.is_in
        assert again.enter().status_code == 302
        assert again.is_in
        found = account(ask, name)
        assert (found["email"], found["is_staff"]) == ("p@example.org", 0)
        assert found["password"].startswith("!")

    def test_log_in_returns_to_the_requested_page(self, browse, idp):
        browser = browse()
        page = browser.get("/accounts/login/?next=/account/").text
        assert 'name="next" value="/account/"' in page
        assert browser.enter(next="/account/").headers["Location"] == "/account/"

    @pytest.mark.parametrize(
        "there", ["https://evil.example/", "//evil.example", "/\\evil.example", "x:y"]
    )
    def test_log_in_never_redirects_to_another_site(self, browse, there):
        assert browse().enter(next=there).headers["Location"] == "/"

    def test_links_and_forms_of_other_sites_start_no_log_in(self, browse):
        browser = browse()
        path = "/accounts/oidc/corp/login/"
        assert browser.get(path).status_code == 405
        answer = browser.session.post(
            browser.site.url + path, allow_redirects=False, timeout=60
        )
        assert answer.status_code == 403

    def test_the_csp_is_that_of_all_pages(self, browse):
        browser = browse()
        plain = browser.get("/accounts/login/").headers["Content-Security-Policy"]
        answer = browser.post("/accounts/oidc/corp/login/")
        assert answer.headers["Content-Security-Policy"] == plain

    def test_claims_are_read_from_userinfo_where_the_file_says_so(
        self, browse, idp, ask
    ):
        name = new_person(idp, groups=None)
        sub = idp.claims["sub"]
        idp.userinfo = {"sub": sub, "groups": ["auditors"]}
        assert browse().enter("/accounts/oidc/told/login/").status_code == 302
        assert account(ask, name)["is_staff"]
        idp.userinfo = {"sub": "another", "groups": ["auditors"]}
        assert browse().enter("/accounts/oidc/told/login/").status_code == 403

    def test_a_provider_that_there_is_not_is_missing(self, browse):
        path = "/accounts/oidc/none/login/"
        assert browse().post(path).status_code == 404
        assert browse().get(f"{path}callback/?code=1&state=2").status_code == 404


class TestHostileAnswers:
    @pytest.mark.parametrize(
        "bend",
        [
            {"nonce": "of another log-in"},
            {"nonce": None},
            {"iss": "https://evil.example"},
            {"aud": "another-site"},
            {"aud": ["windowpane", "another-site"]},
            {"aud": ["windowpane", "another-site"], "azp": "another-site"},
            {"exp": 1_700_000_000},
            {"exp": None},
            {"iat": 4_000_000_000},
            {"sub": None},
            {"sub": ""},
        ],
        ids=str,
    )
    def test_a_token_that_is_not_for_this_log_in_opens_nothing(self, browse, idp, bend):
        idp.bend = bend
        browser = browse()
        answer = browser.enter()
        assert answer.status_code == 403
        assert REFUSED in answer.text
        assert not browser.is_in

    @pytest.mark.parametrize("how", ["none", "shared secret", "another key", "text"])
    def test_a_token_that_the_provider_did_not_sign_opens_nothing(
        self, browse, idp, how
    ):
        stranger = type(idp)()
        stranger.server.server_close()
        stranger.kid = idp.kid
        idp.sign = {
            "none": lambda token: jwt.encode(token, None, "none"),
            "shared secret": lambda token: jwt.encode(
                token, "a secret of the client" * 2, "HS256", headers={"kid": idp.kid}
            ),
            "another key": stranger.sign_right,
            "text": lambda token: "no token",
        }[how]
        browser = browse()
        assert browser.enter().status_code == 403
        assert not browser.is_in

    def test_a_new_key_is_read_and_the_old_one_forgotten(self, browse, idp):
        assert browse().enter().status_code == 302
        old, kid = idp.key, idp.kid
        idp.rotate_key()
        assert browse().enter().status_code == 302
        idp.sign = lambda token: jwt.encode(token, old, "ES256", headers={"kid": kid})
        assert browse().enter().status_code == 403

    def test_an_answer_opens_once(self, browse, idp):
        browser = browse()
        back = browser.leave()
        assert browser.get(back).status_code == 302
        assert browser.get(back).status_code == 403

    def test_an_answer_opens_in_the_browser_that_asked_alone(self, browse):
        """Or an attacker could log in others as themselves."""
        back, victim = browse().leave(), browse()
        victim.get("/accounts/login/")
        assert victim.get(back).status_code == 403
        assert not victim.is_in

    def test_an_answer_of_another_provider_opens_nothing(self, browse, idp):
        browser = browse()
        back = browser.leave()
        assert browser.get(f"{back}&iss=https://evil.example").status_code == 403
        assert browser.get(back.replace("/corp/", "/told/")).status_code == 403

    @pytest.mark.parametrize(
        "query",
        ["", "?error=access_denied", "?code=x", "?state=x&code=x", "?state=%00"],
    )
    def test_answers_of_another_form_open_nothing(self, browse, query):
        browser = browse()
        answer = browser.get(f"/accounts/oidc/corp/login/callback/{query}")
        assert answer.status_code == 403
        assert REFUSED in answer.text

    def test_a_person_who_cancels_there_can_try_again(self, browse):
        browser = browse()
        state = browser.leave().rpartition("state=")[2]
        path = f"/accounts/oidc/corp/login/callback/?error=access_denied&state={state}"
        assert browser.get(path).status_code == 403
        assert browser.enter().status_code == 302


class TestAccounts:
    """Users never get the account of another user, whatever is claimed."""

    @pytest.mark.parametrize("verified", [True, False, "true", None])
    def test_an_address_of_another_account_takes_nothing_over(
        self, browse, idp, ask, organisation, verified
    ):
        ask("UPDATE auth_user SET email='bob@example.org' WHERE username='bob'")
        name = new_person(idp, email="Bob@example.org", email_verified=verified)
        assert browse().enter().status_code == 302
        assert account(ask, name)["email"] == ""

    def test_an_address_that_is_not_vouched_for_is_left_out(self, browse, idp, ask):
        name = new_person(idp, email="p2@example.org", email_verified=False)
        browse().enter()
        assert account(ask, name)["email"] == ""

    def test_a_name_that_is_taken_gets_a_number(self, browse, idp, ask):
        new_person(idp, preferred_username="Bob")
        browse().enter()
        new_person(idp, preferred_username="<b>bob</b>\x00" + "x" * 200)
        browse().enter()
        names = [row[0] for row in ask("SELECT username FROM auth_user")]
        assert "Bob-2" in names
        assert not [name for name in names if "<" in name or "\x00" in name]

    def test_provider_without_sign_up_admits_connected_accounts(self, browse, idp):
        new_person(idp)
        stranger, bob = browse(), browse()
        back = stranger.leave("/accounts/oidc/open/login/")
        assert stranger.get(back).status_code == 403
        bob.log_in("bob")
        wrong = {"open-password": "wrong"}
        path = "/account/connect/open/"
        assert bob.post(path, "/account/", **wrong).status_code == 422
        right = {"open-password": "correct horse battery"}
        back = bob.leave(path, "/account/", **right)
        assert bob.get(back).headers["Location"] == "/account/"
        again = browse()
        assert again.get(again.leave("/accounts/oidc/open/login/")).status_code == 302
        assert "bob" in again.get("/account/").text

    def test_a_connected_one_is_not_connected_to_another_account(
        self, browse, idp, ask
    ):
        name = new_person(idp)
        browse().enter()
        bob = browse()
        bob.log_in("bob")
        right = {"corp-password": "correct horse battery"}
        bob.get(bob.leave("/account/connect/corp/", "/account/", **right))
        found = ask(
            "SELECT u.username FROM socialaccount_socialaccount s "
            "JOIN auth_user u ON u.id = s.user_id WHERE s.uid = ?",
            idp.claims["sub"],
        )
        assert found == [(name,)]

    def test_users_without_password_confirm_with_their_name(self, browse, idp, ask):
        name = new_person(idp)
        browser, other = browse(), browse()
        browser.enter()
        other.enter()
        path = "/account/sign-out/"
        wrong = {"sign_out-password": "bob"}
        assert browser.post(path, "/account/", **wrong).status_code == 422
        right = {"sign_out-password": name}
        assert browser.post(path, "/account/", **right).status_code == 302
        assert browser.is_in
        assert not other.is_in
        deletion = {"deletion-password": name}
        browser.post("/account/delete/", "/account/", **deletion)
        assert account(ask, name) is None


class TestGroups:
    def rights(self, ask, name):
        rows = ask(
            "SELECT p.codename FROM auth_user u "
            "JOIN auth_user_groups ug ON ug.user_id = u.id "
            "JOIN auth_group_permissions gp ON gp.group_id = ug.group_id "
            "JOIN auth_permission p ON p.id = gp.permission_id WHERE u.username = ?",
            name,
        )
        return {row[0] for row in rows}

    def test_groups_grant_and_remove_permissions(self, browse, idp, ask):
        name = new_person(idp, groups=["chat", "reviewers"])
        browser = browse()
        browser.enter()
        assert self.rights(ask, name) == {"view_metadata", "read_content"}
        assert browser.get("/admin/memory/conversation/").status_code == 200
        idp.claims["groups"] = ["chat", "auditors"]
        browse().enter()
        assert self.rights(ask, name) == {"view_metadata"}
        idp.claims["groups"] = ["chat"]
        browse().enter()
        assert self.rights(ask, name) == set()
        assert not account(ask, name)["is_staff"]
        assert browser.get("/admin/memory/conversation/").status_code == 302

    def test_staff_by_hand_stay_staff(self, browse, idp, ask):
        name = new_person(idp, groups=["chat"])
        browse().enter()
        ask("UPDATE auth_user SET is_staff=1 WHERE username=?", name)
        idp.claims["groups"] = ["chat", "reviewers"]
        browse().enter()
        idp.claims["groups"] = ["chat"]
        browse().enter()
        assert account(ask, name)["is_staff"]

    def test_users_without_a_required_group_get_no_account(self, browse, idp, ask):
        name = new_person(idp, groups=["others"])
        answer = browse().enter()
        assert answer.status_code == 403
        assert "in no group that may use this site" in answer.text
        assert account(ask, name) is None

    def test_lost_group_locks_the_account_until_it_returns(self, browse, idp, ask):
        name = new_person(idp)
        before = browse()
        before.enter()
        idp.claims["groups"] = []
        assert browse().enter().status_code == 403
        assert not before.is_in
        assert not account(ask, name)["is_active"]
        idp.claims["groups"] = ["chat"]
        assert browse().enter().status_code == 302

    def test_account_deactivated_by_staff_stays_locked(self, browse, idp, ask):
        name = new_person(idp)
        browse().enter()
        ask("UPDATE auth_user SET is_active=0 WHERE username=?", name)
        answer = browse().enter()
        assert answer.status_code == 403
        assert "deactivated" in answer.text
        idp.claims["groups"] = []
        browse().enter()
        idp.claims["groups"] = ["chat"]
        assert browse().enter().status_code == 403

    def test_ten_thousand_of_them_cost_a_log_in_and_leave_nothing(
        self, browse, idp, ask
    ):
        many = [f"group-{number}" * 3 for number in range(10_000)]
        name = new_person(idp, groups=[*many, "auditors", "chat"])
        assert browse().enter().status_code == 302
        assert self.rights(ask, name) == {"view_metadata"}
        [(kept,)] = ask(
            "SELECT extra_data FROM socialaccount_socialaccount WHERE uid = ?",
            idp.claims["sub"],
        )
        assert len(kept) < 200
        assert ask("SELECT count(*) FROM auth_group")[0][0] <= 6

    @pytest.mark.parametrize("claim", [{"reviewers": 1}, {}, [["chat"]], "reviewers"])
    def test_claims_without_the_group_are_refused(self, browse, idp, claim):
        new_person(idp, groups=claim)
        assert "in no group that may use" in refused(browse()).text

    @pytest.mark.parametrize(
        "claims",
        [
            {"groups": None},
            {"groups": 7},
            {
                "groups": None,
                "_claim_names": {"groups": "src1"},
                "_claim_sources": {"src1": {"endpoint": "https://graph.invalid/"}},
            },
            {"groups": None, "hasgroups": True},
        ],
    )
    def test_unknown_groups_take_nothing(self, browse, idp, ask, claims):
        """Entra leaves the groups of a user in more than 200 out of the token."""
        name = new_person(idp, groups=["chat", "reviewers"])
        before = browse()
        before.enter()
        idp.claims |= claims
        assert "does not say which groups" in refused(browse()).text
        assert before.is_in
        assert self.rights(ask, name) == {"view_metadata", "read_content"}
        assert account(ask, name)["is_active"]

    def test_unknown_groups_open_no_account(self, browse, idp, ask):
        name = new_person(idp, groups=None)
        assert "does not say which groups" in refused(browse()).text
        assert account(ask, name) is None

    def test_unknown_groups_change_no_rights_where_all_are_members(
        self, browse, idp, ask
    ):
        path = "/accounts/oidc/told/login/"
        name = new_person(idp, groups=None)
        idp.userinfo = {"sub": idp.claims["sub"], "groups": ["auditors"]}
        browse().enter(path)
        idp.userinfo = {"sub": idp.claims["sub"]}
        assert browse().enter(path).status_code == 302
        assert self.rights(ask, name) == {"view_metadata"}

    def test_keys_of_an_object_are_groups(self, browse, idp):
        """Zitadel's roles: {"chat": {"<organisation>": "example.org"}}."""
        new_person(idp, groups={"chat": {"31": "example.org"}})
        assert browse().enter().status_code == 302

    def test_groups_are_found_by_a_dotted_path(self, browse, idp, ask):
        """Keycloak's realm_access.roles; a claim of that whole name comes first."""
        path = "/accounts/oidc/nested/login/"
        new_person(idp, groups=None, realm_access={"roles": ["chat"]})
        assert browse().enter(path).status_code == 302
        new_person(
            idp, realm_access={"roles": ["chat"]}, **{"realm_access.roles": ["x"]}
        )
        assert browse().enter(path).status_code == 403
        new_person(idp, groups=None, realm_access=["chat"])
        assert "does not say which groups" in refused(browse(), path).text
