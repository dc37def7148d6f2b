"""A provider of identities on loopback that speaks SAML, and can lie."""

import base64
import html
import secrets
import zlib
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree

P, A = "urn:oasis:names:tc:SAML:2.0:protocol", "urn:oasis:names:tc:SAML:2.0:assertion"
DS = "http://www.w3.org/2000/09/xmldsig#"
CANONICAL = "http://www.w3.org/2001/10/xml-exc-c14n#"
NAMES = {"p": P, "a": A, "ds": DS}
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
PASSWORD = "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"


class Key:
    """A key, and its self-signed certificate."""

    def __init__(self, bits: int = 2048) -> None:
        self.private = rsa.generate_private_key(65537, bits)
        name = x509.Name([])
        begin = datetime.now(UTC) - timedelta(days=1)
        certificate = (
            x509.CertificateBuilder(name, name, self.private.public_key())
            .serial_number(1)
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(days=9))
            .sign(self.private, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM).decode()
        self.pem = self.private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def sign(element: Any, key: Key, **options: Any) -> None:
    """`element` with a signature that envelops it, behind its issuer."""
    method = options.get("method", xmlsec.Transform.RSA_SHA256)
    digest = options.get("digest", xmlsec.Transform.SHA256)
    node = xmlsec.template.create(element, xmlsec.Transform.EXCL_C14N, method, ns="ds")
    element.insert(1, node)
    reference = xmlsec.template.add_reference(node, digest, uri=f"#{element.get('ID')}")
    xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
    if extra := options.get("transform"):
        xmlsec.template.add_transform(reference, extra)
    last = xmlsec.template.add_transform(reference, xmlsec.Transform.EXCL_C14N)
    if prefixes := options.get("prefixes"):
        add_prefixes(last, *prefixes)
    # As senders do; a receiver has to believe the certificate that it was given before.
    info = xmlsec.template.ensure_key_info(node)
    xmlsec.template.x509_data_add_certificate(xmlsec.template.add_x509_data(info))
    xmlsec.tree.add_ids(element, ["ID"])
    context = xmlsec.SignatureContext()
    context.key = options.get("secret") or xmlsec.Key.from_memory(
        key.pem, xmlsec.KeyFormat.PEM
    )
    if "secret" not in options:
        context.key.load_cert_from_memory(
            key.certificate.encode(), xmlsec.KeyFormat.PEM
        )
    context.sign(node)


def add_prefixes(step: Any, *prefixes: str, name: str = "PrefixList") -> None:
    """Add the prefixes of namespaces that this step of a signature keeps, wherever they
    are known.
    """
    named = etree.SubElement(step, f"{{{CANONICAL}}}InclusiveNamespaces")
    named.set(name, " ".join(prefixes))


def find(root: Any, path: str) -> Any:
    """The first one, `a:` and `p:` before the names."""
    return root.find(path, NAMES)


class SamlIdentityProvider:
    """A SAML identity provider for one user, given by `subject` and `attributes`.

    `bend` changes values of an answer before it is signed (None: left out), `reshape`
    its elements, `tamper` the text after it was signed. `signs` is what is signed.
    """

    def __init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.entity_id = f"{self.url}/metadata"
        self.key = Key()
        self.reset()

    def reset(self, subject: str = "1", **attributes: Any) -> None:
        self.subject = subject
        self.attributes = {"uid": "alice", "groups": ["chat"], **attributes}
        self.bend: dict[str, Any] = {}
        self.reshape = self.tamper = lambda root: root
        self.signs, self.signing = ("assertion",), {}
        self.signing_key = self.key
        self.is_well, self.asked_for_metadata = True, 0

    def __enter__(self) -> Self:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def publish(self) -> str:
        certificate = "".join(self.key.certificate.splitlines()[1:-1])
        return (
            f'<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" '
            f'entityID="{self.entity_id}"><md:IDPSSODescriptor '
            f'protocolSupportEnumeration="{P}"><md:KeyDescriptor use="signing">'
            f'<ds:KeyInfo xmlns:ds="{DS}"><ds:X509Data><ds:X509Certificate>'
            f"{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>"
            f'</md:KeyDescriptor><md:SingleSignOnService Binding="{REDIRECT}" '
            f'Location="{self.url}/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>'
        )

    def answer(self, asked: dict[str, str]) -> tuple[str, dict[str, str]]:
        """Return the form that a browser has to send, and its address."""
        request = etree.fromstring(
            zlib.decompress(base64.b64decode(asked["SAMLRequest"]), -15)
        )
        values = {
            "issuer": self.entity_id,
            "destination": request.get("AssertionConsumerServiceURL"),
            "recipient": request.get("AssertionConsumerServiceURL"),
            "audience": find(request, "a:Issuer").text,
            "asked": request.get("ID"),
            "confirmed": request.get("ID"),
            "from": in_minutes(-1),
            "until": in_minutes(5),
            "format": PERSISTENT,
            "status": SUCCESS,
            **self.bend,
        }
        text = self.write(values)
        form = {"SAMLResponse": base64.b64encode(text).decode()}
        if "relay" in self.bend:
            form["RelayState"] = self.bend["relay"]
        return request.get("AssertionConsumerServiceURL"), form

    def write(self, values: dict[str, Any]) -> bytes:
        root = self.reshape(_build(self, values))
        if "assertion" in self.signs:
            sign(find(root, "a:Assertion"), self.signing_key, **self.signing)
        if "response" in self.signs:
            sign(root, self.signing_key, **self.signing)
        # Read again: lxml finds no element by its name that xmlsec has made.
        done = self.tamper(etree.fromstring(etree.tostring(root)))
        return done if isinstance(done, bytes) else etree.tostring(done)


def in_minutes(minutes: float) -> str:
    when = datetime.now(UTC) + timedelta(minutes=minutes)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _add(parent: Any, name: str, text: str | None = None, **attributes: Any) -> Any:
    prefix, _, tag = name.partition(":")
    given = {key: value for key, value in attributes.items() if value is not None}
    element = etree.SubElement(parent, f"{{{NAMES[prefix]}}}{tag}", given)
    element.text = text
    return element


def _build(provider: SamlIdentityProvider, values: dict[str, Any]) -> Any:
    root = etree.Element(f"{{{P}}}Response", nsmap={"samlp": P, "saml": A})
    common = {"Version": "2.0", "IssueInstant": in_minutes(0)}
    head = {"Destination": values["destination"], "InResponseTo": values["asked"]}
    for name, value in {"ID": f"r{secrets.token_hex(8)}", **common, **head}.items():
        if value is not None:
            root.set(name, value)
    _add(root, "a:Issuer", values["issuer"])
    _add(_add(root, "p:Status"), "p:StatusCode", Value=values["status"])
    assertion = _add(root, "a:Assertion", ID=f"a{secrets.token_hex(8)}", **common)
    _add(assertion, "a:Issuer", values["issuer"])
    subject = _add(assertion, "a:Subject")
    qualifiers = {
        name: values.get(name) for name in ("NameQualifier", "SPNameQualifier")
    }
    _add(subject, "a:NameID", provider.subject, Format=values["format"], **qualifiers)
    confirmation = _add(subject, "a:SubjectConfirmation", Method=BEARER)
    _add(
        confirmation,
        "a:SubjectConfirmationData",
        Recipient=values["recipient"],
        InResponseTo=values["confirmed"],
        NotOnOrAfter=values.get("confirmed until", values["until"]),
    )
    times = {"NotBefore": values["from"], "NotOnOrAfter": values["until"]}
    conditions = _add(assertion, "a:Conditions", **times)
    if values["audience"] is not None:
        restriction = _add(conditions, "a:AudienceRestriction")
        _add(restriction, "a:Audience", values["audience"])
    session = {"SessionNotOnOrAfter": values.get("session until")}
    statement = _add(
        assertion, "a:AuthnStatement", AuthnInstant=in_minutes(0), **session
    )
    _add(_add(statement, "a:AuthnContext"), "a:AuthnContextClassRef", PASSWORD)
    _add_attributes(assertion, provider.attributes)
    return root


def _add_attributes(assertion: Any, attributes: dict[str, Any]) -> None:
    statement = None
    for name, value in attributes.items():
        if value is None:
            continue
        if statement is None:
            statement = _add(assertion, "a:AttributeStatement")
        attribute = _add(statement, "a:Attribute", Name=name)
        for each in [value] if isinstance(value, str) else value:
            _add(attribute, "a:AttributeValue", each)


def wrap(how: str, stranger: str) -> Any:
    """A tamper() that puts an assertion about `stranger` where a careless reader looks,
    and what was signed where only the check of the signature does."""

    def tamper(root: Any) -> Any:
        right = find(root, "a:Assertion")
        wrong = deepcopy(right)
        find(wrong, "a:Subject/a:NameID").text = stranger
        signature = find(wrong, "ds:Signature")
        if signature is not None:
            wrong.remove(signature)
        return WRAPPINGS[how](root, right, wrong)

    return tamper


def _beside(root: Any, right: Any, wrong: Any) -> Any:
    wrong.set("ID", "other")
    right.addprevious(wrong)
    return root


def _around(root: Any, right: Any, wrong: Any) -> Any:
    wrong.set("ID", "other")
    root.replace(right, wrong)
    wrong.append(right)
    return root


def _signature_taken(root: Any, right: Any, wrong: Any) -> Any:
    """The signature is in the wrong one and still names the right one."""
    wrong.set("ID", "other")
    wrong.insert(1, find(right, "ds:Signature"))
    right.addprevious(wrong)
    return root


def _within_signature(root: Any, right: Any, wrong: Any) -> Any:
    wrong.set("ID", "other")
    signature = find(right, "ds:Signature")
    root.replace(right, wrong)
    wrong.insert(1, signature)
    _add(signature, "ds:Object").append(right)
    return root


def _same_id(root: Any, right: Any, wrong: Any) -> Any:
    right.addprevious(wrong)
    return root


def _in_extensions(root: Any, right: Any, wrong: Any) -> Any:
    root.replace(right, wrong)
    extensions = etree.Element(f"{{{P}}}Extensions")
    extensions.append(right)
    root.insert(1, extensions)
    return root


def _whole_response(root: Any, right: Any, wrong: Any) -> Any:
    """Return a signed response with a copy of it inside of the signature."""
    signature = find(root, "ds:Signature")
    copy = deepcopy(root)
    copy.remove(find(copy, "ds:Signature"))
    root.replace(right, wrong)
    root.set("ID", "other")
    _add(signature, "ds:Object").append(copy)
    return root


WRAPPINGS = {
    "beside": _beside,
    "around": _around,
    "signature taken": _signature_taken,
    "within signature": _within_signature,
    "same id": _same_id,
    "in extensions": _in_extensions,
    "whole response": _whole_response,
}
PAGE = """<!doctype html><form method="post" action="{action}">{fields}
<button>Go on</button></form><script>document.forms[0].submit()</script>"""


def _make_handler(provider: SamlIdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/metadata":
                provider.asked_for_metadata += 1
                text = provider.publish() if provider.is_well else "away"
                self.send(text, "application/xml")
                return
            query = parse_qs(parts.query)
            action, form = provider.answer({name: v[0] for name, v in query.items()})
            fields = "".join(
                f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
                for name, value in form.items()
            )
            self.send(PAGE.format(action=action, fields=fields), "text/html")

        def send(self, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the log out of the output of the tests."""

    return Handler
