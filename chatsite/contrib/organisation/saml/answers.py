"""What makes an answer of a provider that speaks SAML its word about one person, for
one log-in on this site.

python3-saml checks the signature, the schema and the times. It lets through what the
standard leaves open: an answer without a recipient or an audience, one that begins with
the right address, any transform in a signature. Here none of that is left open.
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

# Letters of base64: a person in two thousand groups has fewer.
MOST_LETTERS = 256 * 1024
# Before it is known who asks for the time that checking them takes.
MOST_ELEMENTS, MOST_ATTRIBUTES = 5_000, 50
# Namespaces that a signature keeps: each of them is looked for in every element.
MOST_PREFIXES = 20
RESPONSE, ASSERTION = f"{{{Names.NS_SAMLP}}}Response", f"{{{Names.NS_SAML}}}Assertion"
SIGNATURE = f"{{{Names.NS_DS}}}Signature"
# With a key pair, and no hash that can be made to fit.
MORE = "http://www.w3.org/2001/04/xmldsig-more#"
SIGNATURES = {
    f"{MORE}{kind}-sha{n}" for kind in ("rsa", "ecdsa") for n in (256, 384, 512)
}
CANONICAL = "http://www.w3.org/2001/10/xml-exc-c14n#"
ALLOWED = {
    "SignatureMethod": SIGNATURES,
    "DigestMethod": {Names.SHA256, Names.SHA384, Names.SHA512},
    "CanonicalizationMethod": {CANONICAL},
    # Others compute what the sender likes, before the signature is looked at.
    "Transform": {
        CANONICAL,
        "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
    },
}
WORDS = {
    code: name.lower()
    for name, code in vars(OneLogin_Saml2_ValidationError).items()
    if isinstance(code, int)
}


class AnswerError(Exception):
    """An answer that proves nothing; the word says why."""


@dataclass(frozen=True)
class SamlAnswer:
    """What a provider says of the person."""

    subject: str
    # By their names, of any number.
    attributes: dict[str, list[str]]
    # The id of the request of this site that it answers; whose that is has to be asked.
    request_id: str
    # When the session has to end that it begins, in seconds of Unix, if it says so.
    until: int | None


def read_saml_answer(settings: OneLogin_Saml2_Settings, posted: str) -> SamlAnswer:
    """What came in the field SAMLResponse, to the address that the settings name.
    Raises AnswerError."""
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
    # Of something of another form python3-saml raises anything, Exception itself, too.
    except Exception as error:  # noqa: BLE001
        raise AnswerError(type(error).__name__) from None


def address_for_answers(settings: OneLogin_Saml2_Settings) -> str:
    return settings.get_sp_data()["assertionConsumerService"]["url"]


def _describe_request(settings: OneLogin_Saml2_Settings) -> dict[str, Any]:
    """The request as python3-saml wants it, to be compared with what was signed."""
    parts = urlsplit(address_for_answers(settings))
    https = "on" if parts.scheme == "https" else "off"
    return {"https": https, "http_host": parts.netloc, "script_name": parts.path}


def _find_assertion(root: Any) -> Any:
    """The only one, in the only place, below signatures that can sign nothing else: so
    what is read below is what was signed, whatever else the document has."""
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
    """Of all of its parent, in the way of the standard (SAML core, 5.4): little of what
    XML signatures can do."""
    target = f"#{signature.getparent().get('ID')}"
    references = Xml.query(signature, ".//ds:Reference")
    if [each.get("URI") for each in references] != [target]:
        raise AnswerError("signature_reference")
    for kind, allowed in ALLOWED.items():
        found = [
            each.get("Algorithm") for each in Xml.query(signature, f".//ds:{kind}")
        ]
        # Each once: a thousand of them are a second of a processor.
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
    """That it was made by this provider for this site and one of its requests; the id
    of that."""
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
    """The name that the provider gives the person for good: of another format it could
    be another's tomorrow."""
    found = Xml.query(assertion, "saml:Subject/saml:NameID")
    if len(found) != 1 or found[0].get("Format") != Names.NAMEID_PERSISTENT:
        raise AnswerError("subject_format")
    provider = settings.get_idp_data()["entityId"]
    site = settings.get_sp_data()["entityId"]
    if (
        found[0].get("NameQualifier", provider) != provider
        or found[0].get("SPNameQualifier", site) != site
    ):
        # A name of another provider, which may be one here.
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
