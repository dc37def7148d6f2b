"""Log-in with providers of identities and with a passkey, in a browser that keeps the
page's CSP.
"""

import json

import pytest
from playwright.sync_api import expect

from tests.fakes.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.fakes.saml_provider import SamlIdentityProvider

from .test_access import is_clean

pytestmark = pytest.mark.browser
KEY = {
    **{"protocol": "ctap2", "transport": "internal", "hasResidentKey": True},
    **{"hasUserVerification": True, "isUserVerified": True},
}


@pytest.fixture(scope="module")
def idp():
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def saml_idp():
    with SamlIdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def organisation(make_site, idp, saml_idp, tmp_path_factory):
    path = tmp_path_factory.mktemp("providers") / "providers.json"
    corp = {"id": "corp", "name": "Example Corp", "issuer": idp.url}
    corp |= {"client_id": CLIENT, "client_secret": SECRET}
    uni = {"protocol": "saml", "id": "uni", "name": "Example University"}
    uni |= {"metadata_url": f"{saml_idp.url}/metadata"}
    path.write_text(json.dumps({"providers": [corp, uni]}))
    env = {"SIGNIN_PROVIDERS": str(path), "SECOND_FACTOR": "offered"}
    mail = {"EMAIL_URL": "dummymail://", "MAIL_FROM": "chat@example.org"}
    site = make_site(**env, **mail)
    site.manage("migrate", "--verbosity", "0")
    with site:
        yield site


@pytest.fixture
def page(take_context, errors, organisation):
    """Return a page of a browser with a passkey of its own, on a host that can have
    some.
    """
    page = take_context().new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda said: "CSP" in said.text and errors.append(said.text),
    )
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})
    return page


def test_a_provider_a_passkey_and_the_pages_of_both(page, organisation, idp):
    root = organisation.url.replace("127.0.0.1", "localhost")
    page.goto(f"{root}/accounts/forgotten/")
    is_clean(page)
    page.goto(f"{root}/accounts/login/")
    is_clean(page)
    page.locator("form[action*=oidc] button").click()
    page.wait_for_url(f"{root}/")
    page.goto(f"{root}/account/")
    is_clean(page)
    page.goto(f"{root}/account/second-factor/")
    expect(page.locator("main img")).to_have_js_property("complete", True)
    assert page.locator("main img").evaluate("(image) => image.naturalWidth") > 50
    is_clean(page)
    page.goto(f"{root}/account/second-factor/passkeys/")
    is_clean(page)
    page.locator("main [name=name]").fill("This phone")
    page.locator("main form[data-passkey] button").click()
    page.wait_for_url(f"{root}/account/")
    page.context.clear_cookies(name="sessionid")
    # From here on in the other language.
    cookie = {"name": "django_language", "value": "zh-hans", "url": root}
    page.context.add_cookies([cookie])
    page.goto(f"{root}/accounts/passkey/")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    is_clean(page)
    page.locator("main form button").click()
    page.wait_for_url(f"{root}/")
    # After the provider, too, it is the second factor.
    page.context.clear_cookies(name="sessionid")
    page.goto(f"{root}/accounts/login/")
    page.locator("form[action*=oidc] button").click()
    page.wait_for_url(f"{root}/accounts/code/")
    is_clean(page)
    page.locator("form[data-passkey] button").click()
    page.wait_for_url(f"{root}/")
    page.goto(f"{root}/account/second-factor/passkeys/")
    page.locator("main form[action*=remove] button").click()
    page.locator("form[data-passkey] button").click()
    page.wait_for_url(f"{root}/account/")


def test_a_form_of_another_site_opens_the_session_that_asked(page, organisation):
    """Both are one provider to a browser: its form comes without cookies of
    this site.
    """
    root = organisation.url.replace("127.0.0.1", "localhost")
    page.goto(f"{root}/accounts/login/?next=/account/")
    page.locator("form[action*=saml] button").click()
    page.wait_for_url(f"{root}/account/")
    page.get_by_role("link", name="Keys and security").click()
    expect(page.locator("#connections-heading + p")).to_be_visible()
    assert not [
        each for each in page.context.cookies() if each["name"] == "saml-answer"
    ]
    # Begun there, it is refused, and the session stays.
    action = f"{root}/accounts/saml/uni/answer/"
    form = f'<form method="post" action="{action}"></form>'
    page.goto("data:text/html," + form)
    page.locator("form").evaluate("(form) => form.submit()")
    expect(page.locator("main [role=alert]")).to_be_visible()
    is_clean(page)
    page.goto(f"{root}/account/#security")
    expect(page.locator("#connections-heading")).to_be_visible()
