"""The checks of a SAML answer: it must prove one user, for one log-in on this site.

python3-saml checks the signature, the schema and the times. It accepts everything that
the standard leaves open: an answer without a recipient or an audience, a recipient that
only begins with the right address, any transform in a signature. This module refuses
all of these.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from allauth.socialaccount import app_settings
from lxml import etree
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Names
from onelogin.saml2.errors import OneLogin_Saml2_ValidationError
from onelogin.saml2.response import OneLogin_Saml2_Response
from onelogin.saml2.settings import OneLogin_Saml2_Settings
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

# Letters of base64: the answer for a user in two thousand groups has fewer.
MOST_LETTERS = 256 * 1024
# Limits before the signature is checked, when the sender is still unknown.
MOST_ELEMENTS, MOST_ATTRIBUTES = 5_000, 50
# Namespace prefixes of a signature: each one is looked up in every element.
MOST_PREFIXES = 20
RESPONSE, ASSERTION = f"{{{Names.NS_SAMLP}}}Response", f"{{{Names.NS_SAML}}}Assertion"
SIGNATURE = f"{{{Names.NS_DS}}}Signature"
# Signatures with a key pair, and no hash with known collisions.
MORE = "http://www.w3.org/2001/04/xmldsig-more#"
SIGNATURES = {
    f"{MORE}{kind}-sha{n}" for kind in ("rsa", "ecdsa") for n in (256, 384, 512)
}
CANONICAL = "http://www.w3.org/2001/10/xml-exc-c14n#"
ALLOWED = {
    "SignatureMethod": SIGNATURES,
    "DigestMethod": {Names.SHA256, Names.SHA384, Names.SHA512},
    "CanonicalizationMethod": {CANONICAL},
    # Other transforms let the sender run computations before the signature check.
    "Transform": {CANONICAL, "http://www.w3.org/2000/09/xmldsig#enveloped-signature"},
}
WORDS = {
    code: name.lower()
    for name, code in vars(OneLogin_Saml2_ValidationError).items()
    if isinstance(code, int)
}


class AnswerError(Exception):
    """An answer that proves nothing; the message is the reason."""


@dataclass(frozen=True)
class SamlAnswer:
    """The statements of a provider about a user, after all checks."""

    subject: str
    # The values of each attribute by its name.
    attributes: dict[str, list[str]]
    # The id of the answered request; the caller checks that it is of this session.
    request_id: str
    # When the new session has to end, in Unix seconds; None if the answer has no end.
    until: int | None


def read_saml_answer(settings: OneLogin_Saml2_Settings, posted: str) -> SamlAnswer:
    """Check the posted SAMLResponse and return its statements.

    It must be addressed to the answer URL of the settings. Raises AnswerError.
    """
    if not posted:
        raise AnswerError("missing")
    if len(posted) > MOST_LETTERS:
        raise AnswerError("size")
    try:
        response = OneLogin_Saml2_Response(settings, posted)
        assertion = _find_assertion(response.document)
        response.is_valid(_describe_request(settings), raise_exceptions=True)
        request_id = _check_addressee(settings, response.document, assertion)
        return SamlAnswer(
            _read_subject(settings, assertion),
            _read_attributes(response),
            request_id,
            response.get_session_not_on_or_after(),
        )
    except AnswerError:
        raise
    except OneLogin_Saml2_ValidationError as error:
        raise AnswerError(WORDS.get(error.code, "invalid")) from None
    # For malformed input python3-saml raises any class, even Exception itself.
    except Exception as error:  # noqa: BLE001
        raise AnswerError(type(error).__name__) from None


def address_for_answers(settings: OneLogin_Saml2_Settings) -> str:
    return settings.get_sp_data()["assertionConsumerService"]["url"]


def _describe_request(settings: OneLogin_Saml2_Settings) -> dict[str, Any]:
    """Return the request in python3-saml's form, to compare with the signed values."""
    parts = urlsplit(address_for_answers(settings))
    https = "on" if parts.scheme == "https" else "off"
    return {"https": https, "http_host": parts.netloc, "script_name": parts.path}


def _find_assertion(root: Any) -> Any:
    """Return the single assertion of the document, after the checks of its place.

    It must be a child of the root, and each signature must be of the root or of the
    assertion. So everything that is read from it was signed, whatever else the document
    contains.
    """
    elements = list(root.iter(etree.Element))
    if root.tag != RESPONSE or len(elements) > MOST_ELEMENTS:
        raise AnswerError("form")
    if any(len(each.attrib) > MOST_ATTRIBUTES for each in elements):
        raise AnswerError("form")
    found = [each for each in elements if each.tag == ASSERTION]
    if len(found) != 1 or found[0].getparent() is not root:
        raise AnswerError("assertions")
    ids = [each.get("ID") for each in elements if each.get("ID") is not None]
    if len(set(ids)) < len(ids):
        raise AnswerError("ids")
    signatures = [each for each in elements if each.tag == SIGNATURE]
    if not signatures:
        raise AnswerError("unsigned")
    signers = [each.getparent() for each in signatures]
    if any(each not in (root, found[0]) for each in signers) or len(signers) > 2:
        raise AnswerError("signature_place")
    for each in signatures:
        _check_signature(each)
    return found[0]


def _check_signature(signature: Any) -> None:
    """Check that a signature covers all of its parent (SAML core, 5.4).

    That profile allows only a small part of XML signatures.
    """
    target = f"#{signature.getparent().get('ID')}"
    references = Xml.query(signature, ".//ds:Reference")
    if [each.get("URI") for each in references] != [target]:
        raise AnswerError("signature_reference")
    for kind, allowed in ALLOWED.items():
        found = [
            each.get("Algorithm") for each in Xml.query(signature, f".//ds:{kind}")
        ]
        # Each algorithm once: a thousand of them take a second of CPU time.
        if not allowed.issuperset(found) or len(set(found)) < len(found):
            raise AnswerError("signature_algorithm")
    if Xml.query(signature, ".//ds:Object"):
        raise AnswerError("signature_object")
    kept = Xml.query(signature, ".//@*[local-name() = 'PrefixList']")
    if sum(len(each.split()) for each in kept) > MOST_PREFIXES:
        raise AnswerError("signature_prefixes")


def _check_addressee(
    settings: OneLogin_Saml2_Settings, root: Any, assertion: Any
) -> str:
    """Return the id of the request that the assertion answers.

    Checks that this provider issued it, for this site and for a request of this site.
    """
    issuer = Xml.query(assertion, "saml:Issuer")[0].text
    if issuer != settings.get_idp_data()["entityId"]:
        raise AnswerError("issuer")
    confirmations = Xml.query(assertion, "saml:Subject/saml:SubjectConfirmation")
    data = Xml.query(
        assertion,
        "saml:Subject/saml:SubjectConfirmation"
        f"[@Method='{Names.CM_BEARER}']/saml:SubjectConfirmationData",
    )
    if len(confirmations) != 1 or len(data) != 1:
        raise AnswerError("confirmation")
    here, told = address_for_answers(settings), data[0]
    if told.get("Recipient") != here or root.get("Destination", here) != here:
        raise AnswerError("recipient")
    if not told.get("NotOnOrAfter"):
        raise AnswerError("no_end")
    restrictions = Xml.query(assertion, "saml:Conditions/saml:AudienceRestriction")
    name = settings.get_sp_data()["entityId"]
    meant = [
        name in [audience.text for audience in Xml.query(each, "saml:Audience")]
        for each in restrictions
    ]
    if not meant or not all(meant):
        raise AnswerError("audience")
    request_id = told.get("InResponseTo")
    if not request_id:
        raise AnswerError("unasked")
    if root.get("InResponseTo") != request_id:
        raise AnswerError("request")
    return request_id


def _read_subject(settings: OneLogin_Saml2_Settings, assertion: Any) -> str:
    """Return the persistent name of the user at the provider.

    A name of another format could later belong to another user.
    """
    found = Xml.query(assertion, "saml:Subject/saml:NameID")
    if len(found) != 1 or found[0].get("Format") != Names.NAMEID_PERSISTENT:
        raise AnswerError("subject_format")
    provider = settings.get_idp_data()["entityId"]
    site = settings.get_sp_data()["entityId"]
    if (
        found[0].get("NameQualifier", provider) != provider
        or found[0].get("SPNameQualifier", site) != site
    ):
        # A name of another provider, which may be that of another account here.
        raise AnswerError("subject_qualifier")
    subject = found[0].text or ""
    if not subject or subject != subject.strip() or len(found[0]):
        raise AnswerError("subject")
    if len(subject) > app_settings.UID_MAX_LENGTH:
        raise AnswerError("subject_size")
    return subject


def _read_attributes(response: OneLogin_Saml2_Response) -> dict[str, list[str]]:
    return {
        name: [each for each in values if isinstance(each, str)]
        for name, values in response.get_attributes().items()
    }
