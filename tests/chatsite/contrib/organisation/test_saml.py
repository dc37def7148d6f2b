"""Log-in with a provider that speaks SAML, and answers of one that prove nothing."""

import base64
import html
import json
import re
import secrets
from copy import deepcopy

import pytest
import requests
import xmlsec
from lxml import etree
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from tests.databases import copy_sqlite
from tests.fakes.saml_provider import (
    A,
    Key,
    SamlIdentityProvider,
    add_prefixes,
    find,
    in_minutes,
    wrap,
)
from tests.servers import Site

from .conftest import PASSWORD, TIMEOUT, Browser, call_commands
from .test_second_factor import CODE, set_up

pytestmark = [pytest.mark.server, pytest.mark.database("sqlite")]
REFUSED = "You could not be logged in"
BEGIN = "/accounts/saml/saml/login/"
ANSWER = "/accounts/saml/saml/answer/"
UNSPECIFIED = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"


FORTNIGHT = 14 * 24 * 3_600
MANY = [secrets.token_hex(16) for _ in range(400)]


class SamlBrowser(Browser):
    """A browser that sends no cookies with the form of another site, as they are
    SameSite.
    """

    def leave(self, path=BEGIN, at="/accounts/login/", **fields):
        """Follow the page to the provider; return the form that it sends by itself."""
        page = self.post(path, at, **fields).text
        target = html.unescape(re.search(r'content="0; url=([^"]+)"', page)[1])
        page = requests.get(target, timeout=TIMEOUT).text
        action = re.search(r'action="([^"]+)"', page)[1]
        fields = re.findall(r'name="(\w+)" value="([^"]*)"', page)
        return action, {name: html.unescape(value) for name, value in fields}

    def come_back(self, action, form):
        answer = requests.post(action, form, allow_redirects=False, timeout=TIMEOUT)
        assert answer.status_code == 303, answer.text
        self.session.cookies.update(answer.cookies)
        return self.get(answer.headers["Location"])

    def enter(self, *path, **fields):
        return self.come_back(*self.leave(*path, **fields))


@pytest.fixture(scope="module")
def idp():
    with SamlIdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def organisation(idp, tmp_path_factory):
    """The site; its providers are described in the three ways."""
    folder = tmp_path_factory.mktemp("saml")
    (folder / "metadata.xml").write_text(idp.publish())
    by_hand = {"entity_id": idp.entity_id, "sso_url": f"{idp.url}/sso"}
    common = {"protocol": "saml", "email_attribute": "mail"}
    first = {
        **{**common, "id": "saml", "name": "Example Corp", "members": ["chat"]},
        **{**by_hand, "certificates": [Key().certificate, idp.key.certificate]},
        "staff": {"reviewers": ["metadata", "content"], "auditors": ["metadata"]},
    }
    read = {**common, "id": "read", "name": "Read", "create_accounts": False}
    read["metadata_file"] = str(folder / "metadata.xml")
    fetched = {**common, "id": "fetched", "name": "Fetched"}
    fetched["metadata_url"] = f"{idp.url}/metadata"
    many = {**fetched, "id": "many", "members": MANY}
    away = {**fetched, "id": "away"}
    brief = {**fetched, "id": "brief", "session_seconds": 600}
    oidc = {"id": "oidc", "name": "Other", "issuer": idp.url, "client_id": "x"}
    listed = folder / "providers.json"
    listed.write_text(
        json.dumps({"providers": [first, read, fetched, many, away, brief, oidc]})
    )
    database = copy_sqlite(folder / "db.sqlite3")
    env = {"DATABASE_URL": database, "SIGNIN_PROVIDERS": str(listed), "DEBUG": "true"}
    site = Site({**env, "SECOND_FACTOR": "offered"})
    people = [("create_user", name, PASSWORD) for name in ("alice", "bob")]
    call_commands(site, ("migrate", "--verbosity", "0"), *people)
    with site:
        yield site


@pytest.fixture
def browse(organisation, idp):
    """browse() -> a new browser; the provider knows a member."""
    idp.reset(secrets.token_hex(4))
    return lambda: SamlBrowser(organisation)


@pytest.fixture
def reasons(organisation):
    """reasons() -> why log-ins were refused, as the log says since the test began."""
    begin = organisation.log_path.stat().st_size

    def read():
        with organisation.log_path.open("rb") as log:
            log.seek(begin)
            text = log.read().decode()
        return re.findall(r"log-in refused: provider=\w+ reason=(\w+)", text)

    return read


def new_person(idp, **attributes):
    subject = secrets.token_hex(4)
    idp.reset(subject, **{"uid": f"p{subject}", **attributes})
    return f"p{subject}"


def account(ask, name):
    columns = "id, email, is_staff, is_active, password"
    statement = f"SELECT {columns} FROM auth_user WHERE username = ?"  # noqa: S608
    found = ask(statement, name)
    return dict(zip(columns.split(", "), found[0], strict=True)) if found else None


class TestLogIn:
    def test_log_in_creates_an_account_and_reuses_it(self, browse, idp, ask):
        first, again = browse(), browse()
        name = new_person(idp, mail="p@example.org")
        assert first.enter().headers["Location"] == "/"
        assert first.is_in
        idp.attributes |= {"uid": "renamed", "mail": "renamed@example.org"}
        assert again.enter().status_code == 302
        assert f">{name}<" in again.get("/account/").text
        found = account(ask, name)
        assert (found["email"], found["is_staff"]) == ("p@example.org", 0)
        assert found["password"].startswith("!")

    def test_log_in_returns_to_the_requested_page(self, browse):
        answer = browse().enter(next="/account/")
        assert answer.headers["Location"] == "/account/"

    @pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example"])
    def test_log_in_never_redirects_to_another_site(self, browse, idp, there):
        idp.bend = {"relay": there}
        browser = browse()
        assert browser.enter(next=there).headers["Location"] == "/"

    def test_relay_state_of_the_answer_is_ignored(self, browse, idp):
        idp.bend = {"relay": "/account/"}
        assert browse().enter().headers["Location"] == "/"

    def test_metadata_at_an_address_do(self, browse):
        browser = browse()
        browser.enter("/accounts/saml/fetched/login/")
        assert browser.is_in

    def test_metadata_that_can_not_be_read_are_not_asked_for_at_once_again(
        self, browse, idp, reasons
    ):
        """Every visitor can begin a log-in, or send an answer."""
        idp.is_well = False
        browser = browse()
        assert browser.post("/accounts/saml/away/login/").status_code == 403
        back = (f"{browser.site.url}/accounts/saml/away/answer/", {})
        assert REFUSED in browser.come_back(*back).text
        assert reasons() == ["saml_metadata"] * 2
        assert idp.asked_for_metadata == 1

    def test_an_answer_that_is_signed_as_a_whole_does(self, browse, idp):
        idp.signs = ("response",)
        browser = browse()
        browser.enter()
        assert browser.is_in

    def test_links_and_forms_of_other_sites_start_no_log_in(self, browse):
        browser = browse()
        assert browser.get(BEGIN).status_code == 405
        answer = browser.session.post(browser.site.url + BEGIN, timeout=TIMEOUT)
        assert answer.status_code == 403

    def test_the_csp_is_that_of_all_pages(self, browse):
        browser = browse()
        plain = browser.get("/accounts/login/").headers["Content-Security-Policy"]
        answer = browser.post(BEGIN)
        assert answer.headers["Content-Security-Policy"] == plain

    def test_each_protocol_has_its_own_addresses(self, browse):
        browser = browse()
        for path in ("/accounts/saml/oidc/login/", "/accounts/saml/none/login/"):
            assert browser.post(path).status_code == 404
        assert browser.post("/accounts/oidc/saml/login/").status_code == 404
        assert browser.get("/accounts/saml/oidc/metadata/").status_code == 404

    def test_the_site_describes_itself(self, browse):
        browser = browse()
        answer = browser.get("/accounts/saml/saml/metadata/")
        checked = Xml.validate_xml(answer.content, "saml-schema-metadata-2.0.xsd")
        assert not isinstance(checked, str)
        assert f'Location="{browser.site.url}{ANSWER}"' in answer.text
        assert "emailAddress" not in answer.text


class TestCookies:
    """Cookies that the form of another site sets in a browser."""

    def test_the_answer_sets_no_other_so_a_session_stays(self, browse):
        browser = browse()
        answer = requests.post(*browser.leave(), allow_redirects=False, timeout=TIMEOUT)
        [cookie] = answer.raw.headers.getlist("Set-Cookie")
        assert cookie.startswith("saml-answer=")
        assert "HttpOnly; Max-Age=120; Path=/accounts/saml/saml/finish/" in cookie
        assert "SameSite=Lax" in cookie

    def test_cookie_is_deleted_after_the_log_in(self, browse):
        browser = browse()
        answer = browser.enter()
        assert 'saml-answer=""' in answer.headers["Set-Cookie"]

    def test_forged_cookie_is_refused(self, browse, reasons):
        browser = browse()
        path = "/accounts/saml/saml/finish/"
        assert browser.get(path).status_code == 403
        browser.session.cookies.set("saml-answer", "eyJ0byI6IngifQ:1:x")
        assert browser.get(path).status_code == 403
        assert reasons() == ["saml_cookie"] * 2

    def test_cookie_of_another_provider_is_refused(self, browse, reasons):
        browser = browse()
        answer = requests.post(
            *browser.leave("/accounts/saml/fetched/login/"),
            allow_redirects=False,
            timeout=TIMEOUT,
        )
        browser.session.cookies.set("saml-answer", answer.cookies["saml-answer"])
        assert browser.get("/accounts/saml/saml/finish/").status_code == 403
        assert reasons() == ["saml_cookie"]

    def test_answers_of_strangers_create_no_session(self, browse, ask):
        action, form = browse().leave()
        before = ask("SELECT count(*) FROM django_session")
        for sent in (form, {"SAMLResponse": "x"}, {}):
            requests.post(action, sent, allow_redirects=False, timeout=TIMEOUT)
        assert ask("SELECT count(*) FROM django_session") == before


def refused(browser, *arguments):
    answer = browser.enter(*arguments)
    assert answer.status_code == 403
    assert REFUSED in answer.text
    assert not browser.is_in
    return answer


class TestHostileAnswers:
    @pytest.mark.parametrize(
        ("bend", "reason"),
        [
            ({"audience": "https://other.example"}, "wrong_audience"),
            ({"audience": None}, "audience"),
            ({"recipient": "https://other.example"}, "wrong_subjectconfirmation"),
            ({"recipient": None}, "recipient"),
            ({"destination": "https://other.example"}, "wrong_destination"),
            ({"issuer": "https://other.example"}, "wrong_issuer"),
            ({"issuer": ""}, "issuer"),
            ({"until": "2026-01-01T00:00:00Z"}, "assertion_expired"),
            ({"confirmed until": "2026-01-01T00:00:00Z"}, "wrong_subjectconfirmation"),
            ({"confirmed until": None}, "no_end"),
            ({"session until": "2026-01-01T00:00:00Z"}, "session_expired"),
            ({"until": "2999-01-01T00:00:00+01:00"}, "Exception"),
            ({"session until": "-2999-01-01T00:00:00Z"}, "Exception"),
            ({"from": "2999-01-01T00:00:00Z"}, "assertion_too_early"),
            ({"asked": None, "confirmed": None}, "unasked"),
            ({"confirmed": None}, "unasked"),
            ({"asked": None}, "request"),
            ({"asked": "x"}, "wrong_subjectconfirmation"),
            ({"confirmed": "x"}, "wrong_subjectconfirmation"),
            ({"asked": "x", "confirmed": "x"}, "state"),
            ({"format": None}, "subject_format"),
            ({"format": UNSPECIFIED}, "subject_format"),
            ({"format": EMAIL}, "subject_format"),
            ({"NameQualifier": "https://other.example"}, "subject_qualifier"),
            ({"SPNameQualifier": "https://other.example"}, "subject_qualifier"),
            ({"status": "urn:oasis:names:tc:SAML:2.0:status:Responder"}, "status"),
        ],
        ids=str,
    )
    def test_an_answer_that_is_not_for_this_log_in_opens_nothing(
        self, browse, idp, reasons, bend, reason
    ):
        idp.bend = bend
        refused(browse())
        [found] = reasons()
        assert found.startswith(f"saml_{reason}")

    @pytest.mark.parametrize("part", ["recipient", "destination"])
    def test_an_address_that_only_has_that_of_the_site_is_another(
        self, browse, idp, reasons, organisation, part
    ):
        here = f"{organisation.url}{ANSWER}"
        idp.bend = {part: f"{here}more/"}
        refused(browse())
        idp.bend = {"recipient": f"https://other.example/?{here}"}
        refused(browse())
        assert reasons() == ["saml_recipient"] * 2

    def test_a_log_in_that_begins_elsewhere_is_told_where_to_begin(self, browse, idp):
        idp.bend = {"asked": None, "confirmed": None}
        assert "has to begin on this site" in refused(browse()).text

    @pytest.mark.parametrize("signs", [(), ("response",), ("assertion",)])
    def test_answer_without_a_covering_signature_is_refused(
        self, browse, idp, reasons, signs
    ):
        """Neither, or the part is changed that one covers."""
        victim = self.victim(browse, idp)
        idp.signs = signs

        def change(root):
            find(root, "a:Assertion/a:Subject/a:NameID").text = victim
            return root

        idp.tamper = change
        refused(browse())
        wanted = "saml_invalid_signature" if signs else "saml_unsigned"
        assert reasons() == [wanted]

    def test_a_response_that_signs_nothing_of_its_assertion_opens_nothing(
        self, browse, idp
    ):
        """A signature beside the assertion, of the status alone."""
        idp.signs = ("response",)

        def move(root):
            signature = find(root, "ds:Signature")
            find(root, "p:Status").append(signature)
            return root

        idp.tamper = move
        refused(browse())

    @pytest.mark.parametrize("signs", ["assertion", "response"])
    def test_the_key_has_to_be_one_that_was_named(self, browse, idp, reasons, signs):
        idp.signs, idp.signing_key = (signs,), Key()
        refused(browse())
        assert reasons() == ["saml_invalid_signature"]

    @pytest.mark.parametrize(
        ("signing", "reason"),
        [
            ({"method": xmlsec.Transform.RSA_SHA1}, "signature_algorithm"),
            ({"digest": xmlsec.Transform.SHA1}, "signature_algorithm"),
            ({"method": xmlsec.Transform.HMAC_SHA256}, "signature_algorithm"),
            ({"transform": xmlsec.Transform.C14N}, "signature_algorithm"),
        ],
        ids=str,
    )
    def test_a_signature_of_another_kind_opens_nothing(
        self, browse, idp, reasons, signing, reason
    ):
        if signing.get("method") == xmlsec.Transform.HMAC_SHA256:
            text = idp.key.certificate.encode()
            signing["secret"] = xmlsec.Key.from_binary_data(xmlsec.KeyData.HMAC, text)
        idp.signing = signing
        refused(browse())
        assert reasons() == [f"saml_{reason}"]

    @pytest.mark.parametrize(
        ("how", "signs"),
        [
            ("beside", "assertion"),
            ("around", "assertion"),
            ("signature taken", "assertion"),
            ("within signature", "assertion"),
            ("same id", "assertion"),
            ("in extensions", "assertion"),
            ("beside", "response"),
            ("whole response", "response"),
        ],
    )
    def test_wrapped_assertion_is_refused(self, browse, idp, reasons, how, signs):
        victim = self.victim(browse, idp)
        idp.signs, idp.tamper = (signs,), wrap(how, victim)
        refused(browse())
        assert reasons()[0].startswith(
            ("saml_assertions", "saml_signature", "saml_ids")
        )

    def victim(self, browse, idp):
        """The subject of someone who has an account; another one logs in."""
        browse().enter()
        victim = idp.subject
        new_person(idp)
        return victim

    def test_a_comment_cuts_no_name(self, browse, idp):
        """Comments are not signed, so one can be added to a name that begins with
        another.
        """
        victim, name = self.victim(browse, idp), new_person(idp)
        idp.subject = f"{victim}.{secrets.token_hex(4)}"

        def comment(root):
            text = etree.tostring(root)
            return text.replace(f">{victim}.".encode(), f">{victim}<!---->.".encode())

        idp.tamper = comment
        browser = browse()
        assert browser.enter().status_code == 302
        assert f">{name}<" in browser.get("/account/").text

    @pytest.mark.parametrize("subject", ["", " ", "1 ", " 1", "x" * 192])
    def test_a_subject_of_another_form_opens_nothing(self, browse, idp, subject):
        idp.subject = subject
        refused(browse())

    @pytest.mark.parametrize(
        "declared",
        [
            '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:9/">]>',
            '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
            + "".join(
                f'<!ENTITY {b} "{f"&{a};" * 10}">'
                for a, b in zip("abcdefghi", "bcdefghie", strict=True)
            )
            + "]>",
            '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/">',
        ],
        ids=["file", "address", "laughs", "definition"],
    )
    def test_entities_are_not_read(self, browse, idp, reasons, declared):
        def declare(root):
            text = etree.tostring(root).replace(b">alice<", b">&e;<")
            return declared.encode() + text

        idp.tamper = declare
        answer = refused(browse())
        assert "root:" not in answer.text
        assert reasons()[0] in ("saml_DTDForbidden", "saml_XMLSyntaxError")

    @pytest.mark.parametrize(
        "sent",
        ["", "x", "<", base64.b64encode(b"<a/>").decode(), "A" * 200_000, "\x00", "é"],
        ids=range(7),
    )
    def test_answers_of_another_form_open_nothing(self, browse, sent):
        browser = browse()
        answer = browser.come_back(
            f"{browser.site.url}{ANSWER}", {"SAMLResponse": sent}
        )
        assert answer.status_code == 403
        assert REFUSED in answer.text

    @pytest.mark.parametrize(
        ("how", "reason"),
        [
            ("attributes", "form"),
            ("transforms", "signature_algorithm"),
            ("PrefixList", "signature_prefixes"),
            ("{other}PrefixList", "signature_prefixes"),
        ],
    )
    def test_expensive_answer_is_refused_before_the_check(
        self, browse, idp, reasons, how, reason
    ):
        """A stranger can send it to the site as often as they like."""

        def blow_up(root):
            if how == "attributes":
                for number in range(5_000):
                    find(root, "a:Assertion").set(f"a{number}", "")
                return root
            steps = find(root, "a:Assertion/ds:Signature//ds:Transforms")
            if "Prefix" in how:
                add_prefixes(steps[-1], *(f"p{n}" for n in range(1_000)), name=how)
                return root
            steps.extend(deepcopy(steps[-1]) for _ in range(1_000))
            return root

        idp.tamper = blow_up
        refused(browse())
        assert reasons()[0].startswith(f"saml_{reason}")

    def test_prefixes_of_a_provider_that_names_some_do(self, browse, idp):
        idp.signing = {"prefixes": ["xs", "xsi"]}
        assert browse().enter().status_code == 302

    def test_an_encrypted_answer_opens_nothing(self, browse, idp, reasons):
        idp.signs = ()

        def hide(root):
            find(root, "a:Assertion").tag = f"{{{A}}}EncryptedAssertion"
            return root

        idp.tamper = hide
        refused(browse())
        # No key to read it with, which is seen before that nothing is signed.
        assert reasons() == ["saml_OneLogin_Saml2_Error"]

    def test_an_answer_opens_once(self, browse, reasons):
        browser = browse()
        back = browser.leave()
        assert browser.come_back(*back).status_code == 302
        assert browser.come_back(*back).status_code == 403
        assert reasons() == ["saml_state"]

    def test_an_answer_opens_once_whichever_process_gets_it(
        self, browse, organisation, reasons
    ):
        browser = browse()
        action, form = browser.leave()
        assert browser.come_back(action, form).status_code == 302
        with Site(organisation.env) as other:
            told = requests.post(action, form, allow_redirects=False, timeout=TIMEOUT)
            browser.session.cookies.update(told.cookies)
            again = browser.get(other.url + told.headers["Location"])
            assert again.status_code == 403
            assert "reason=saml_state" in other.log_path.read_text()

    def test_an_answer_opens_in_the_browser_that_asked_alone(self, browse, reasons):
        """Or an attacker could log in others as themselves."""
        back, victim = browse().leave(), browse()
        victim.get("/accounts/login/")
        victim.leave()
        assert victim.come_back(*back).status_code == 403
        assert not victim.is_in
        assert reasons() == ["saml_state"]

    def test_an_answer_to_another_provider_opens_nothing(self, browse, reasons):
        browser = browse()
        action, form = browser.leave("/accounts/saml/fetched/login/")
        other = action.replace("/fetched/", "/saml/")
        assert browser.come_back(other, form).status_code == 403
        assert not browser.is_in

    def test_the_log_has_no_word_of_the_provider(self, browse, idp, organisation):
        idp.bend = {"issuer": "https://planted-by-a-stranger.example"}
        refused(browse())
        assert "planted-by-a-stranger" not in organisation.log_path.read_text()


class TestAccounts:
    """Users never get the account of another user, whatever is claimed."""

    def test_an_address_of_another_account_takes_nothing_over(self, browse, idp, ask):
        ask("UPDATE auth_user SET email='bob@example.org' WHERE username='bob'")
        name = new_person(idp, mail="Bob@example.org")
        assert browse().enter().status_code == 302
        assert account(ask, name)["email"] == ""

    def test_an_attribute_that_the_file_does_not_name_is_no_address(
        self, browse, idp, ask
    ):
        name = new_person(idp, email="p3@example.org", mail="no address")
        browse().enter()
        assert account(ask, name)["email"] == ""

    def test_an_attribute_says_whose_account_it_is_not(self, browse, idp, ask):
        name = new_person(idp)
        browse().enter()
        subject = idp.subject
        new_person(
            idp,
            **{"urn:oasis:names:tc:SAML:attribute:subject-id": subject, "sub": subject},
        )
        browser = browse()
        browser.enter()
        assert f">{name}<" not in browser.get("/account/").text

    def test_a_name_that_is_taken_gets_a_number(self, browse, idp, ask):
        new_person(idp, uid="Bob")
        browse().enter()
        new_person(idp, uid=None)
        browse().enter()
        names = [row[0] for row in ask("SELECT username FROM auth_user")]
        assert {"Bob-2", "user"} <= set(names)

    def test_provider_without_sign_up_admits_connected_accounts(self, browse, idp, ask):
        new_person(idp)
        there, path = "/accounts/saml/read/login/", "/account/connect/read/"
        assert "does not create one by itself" in refused(browse(), there).text
        bob = browse()
        bob.log_in("bob")
        wrong = {"read-password": "wrong"}
        assert bob.post(path, "/account/", **wrong).status_code == 422
        right = {"read-password": PASSWORD}
        idp.bend = {"session until": in_minutes(10)}
        assert bob.enter(path, "/account/", **right).headers["Location"] == "/account/"
        # The password has begun it.
        assert seconds_left(ask, bob) > 3_600
        again = browse()
        assert again.enter(there).status_code == 302
        assert "bob" in again.get("/account/").text
        off = "/account/disconnect/read/"
        assert bob.post(off, "/account/", **right).status_code == 302
        refused(browse(), there)

    def test_a_connected_one_is_not_connected_to_another_account(
        self, browse, idp, ask
    ):
        name = new_person(idp)
        browse().enter()
        bob = browse()
        bob.log_in("bob")
        right = {"saml-password": PASSWORD}
        bob.enter("/account/connect/saml/", "/account/", **right)
        found = ask(
            "SELECT u.username, s.extra_data FROM socialaccount_socialaccount s "
            "JOIN auth_user u ON u.id = s.user_id WHERE s.uid = ?",
            idp.subject,
        )
        assert [row[0] for row in found] == [name]
        assert set(json.loads(found[0][1])) == {"sub", "name", "address"}


def seconds_left(ask, browser):
    """Return the seconds until the session of a browser ends."""
    [[left]] = ask(
        "SELECT strftime('%s', expire_date) - strftime('%s', 'now') "
        "FROM django_session WHERE session_key = ?",
        browser.session.cookies["sessionid"],
    )
    return left


class TestSessions:
    """Sessions of a provider end when it says so, or after the time of the file."""

    def test_session_lasts_as_long_as_others(self, browse, ask):
        browser = browse()
        browser.enter()
        assert seconds_left(ask, browser) > FORTNIGHT - 3_600

    def test_session_ends_at_the_time_of_the_provider(self, browse, idp, ask):
        """The session is of a new account, and of a known one."""
        new_person(idp)
        idp.bend = {"session until": in_minutes(10)}
        for browser in (browse(), browse()):
            browser.enter()
            assert browser.is_in
            assert seconds_left(ask, browser) <= 600

    def test_session_lasts_no_longer_than_others(self, browse, idp, ask):
        idp.bend = {"session until": "2999-01-01T00:00:00Z"}
        browser = browse()
        browser.enter()
        assert seconds_left(ask, browser) <= FORTNIGHT

    @pytest.mark.parametrize(("minutes", "most"), [(None, 600), (60, 600), (5, 300)])
    def test_session_ends_after_the_minutes_of_the_provider_file(
        self, browse, idp, ask, minutes, most
    ):
        if minutes:
            idp.bend = {"session until": in_minutes(minutes)}
        browser = browse()
        browser.enter("/accounts/saml/brief/login/")
        assert seconds_left(ask, browser) <= most

    def test_session_with_second_factor_ends_at_the_same_time(self, browse, idp, ask):
        alice = browse()
        alice.log_in("alice")
        new_person(idp)
        right = {"fetched-password": PASSWORD}
        alice.enter("/account/connect/fetched/", "/account/", **right)
        _secret, codes = set_up(alice)
        idp.bend = {"session until": in_minutes(10)}
        browser = browse()
        there = "/accounts/saml/fetched/login/"
        assert browser.enter(there).headers["Location"] == CODE
        assert not browser.is_in
        assert browser.post(CODE, CODE, code=codes[0]).status_code == 302
        assert browser.is_in
        assert seconds_left(ask, browser) <= 600


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
        browse().enter()
        assert self.rights(ask, name) == {"view_metadata", "read_content"}
        assert account(ask, name)["is_staff"]
        idp.attributes["groups"] = "chat"
        browse().enter()
        assert self.rights(ask, name) == set()
        assert not account(ask, name)["is_staff"]

    def test_lost_group_locks_the_account_until_it_returns(self, browse, idp, ask):
        name = new_person(idp)
        before = browse()
        before.enter()
        idp.attributes["groups"] = ["auditors"]
        assert "in no group that may use this site" in refused(browse()).text
        assert not before.is_in
        assert self.rights(ask, name) == set()
        idp.attributes["groups"] = ["chat"]
        assert browse().enter().status_code == 302

    def test_unknown_groups_take_nothing(self, browse, idp, ask):
        """Entra sends a link in place of the groups of a member of more than 150."""
        name = new_person(idp, groups=["chat", "reviewers"])
        before = browse()
        before.enter()
        idp.attributes["groups"] = None
        idp.attributes["groups.link"] = "https://graph.invalid/"
        assert "does not say which groups" in refused(browse()).text
        assert before.is_in
        assert self.rights(ask, name) == {"view_metadata", "read_content"}

    @pytest.mark.parametrize("groups", [None, [], "reviewers"])
    def test_users_without_a_required_group_get_no_account(
        self, browse, idp, ask, groups
    ):
        name = new_person(idp, groups=groups)
        refused(browse())
        assert account(ask, name) is None

    def test_a_thousand_of_them_cost_a_log_in_and_leave_nothing(self, browse, idp, ask):
        many = [f"group-{number}" * 3 for number in range(1_000)]
        name = new_person(idp, groups=[*many, "auditors", "chat"])
        assert browse().enter().status_code == 302
        assert self.rights(ask, name) == {"view_metadata"}

    def test_groups_that_exceed_the_cookie_are_refused(self, browse, idp, reasons):
        there = "/accounts/saml/many/login/"
        new_person(idp, groups=MANY[:50])
        assert browse().enter(there).status_code == 302
        new_person(idp, groups=MANY)
        refused(browse(), there)
        assert reasons() == ["saml_groups_size"]
