"""The metadata of a SAML provider: its name, its log-in URL and its signing keys.

Imported while the settings load, so this module must not read them.
"""

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Names
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from ..configuration import SamlProvider, check_https_address

IN_METADATA = "ds:KeyInfo/ds:X509Data/ds:X509Certificate"


@dataclass(frozen=True)
class Description:
    entity_id: str
    sso_url: str
    # Base64 without the BEGIN and END lines.
    certificates: tuple[str, ...]

    def as_settings(self) -> dict[str, Any]:
        """Return the description in python3-saml's form.

        Its key x509certMulti allows more than one certificate.
        """
        return {
            "entityId": self.entity_id,
            "singleSignOnService": {
                "url": self.sso_url,
                "binding": Names.BINDING_HTTP_REDIRECT,
            },
            "x509certMulti": {"signing": list(self.certificates)},
        }


def check_provider(provider: SamlProvider) -> None:
    """Raise ValueError if the description of the provider is incomplete or invalid.

    Metadata behind a URL is not fetched.
    """
    if not provider.metadata_url:
        read_description(provider)


def read_description(provider: SamlProvider) -> Description:
    """Return the description from the file of providers or its metadata file.

    Raises ValueError.
    """
    if not provider.metadata_file:
        return _describe(
            provider.entity_id, provider.sso_url or "", provider.certificates
        )
    try:
        text = Path(provider.metadata_file).read_bytes()
    except OSError as error:
        raise ValueError(
            f"{provider.metadata_file} can't be read: {error.strerror}"
        ) from None
    return parse_metadata(text, provider.entity_id)


def parse_metadata(text: bytes, entity_id: str) -> Description:
    """Return the description of the provider with this entity id.

    With "" the metadata must describe exactly one provider. Raises ValueError.
    """
    try:
        root = Xml.to_etree(text)
    except (ValueError, SyntaxError):
        raise ValueError("its metadata is no XML that can be believed") from None
    found = [
        each
        for each in Xml.query(root, "//md:EntityDescriptor[md:IDPSSODescriptor]")
        if entity_id in ("", each.get("entityID"))
    ]
    if len(found) != 1:
        raise ValueError(
            f"its metadata has {len(found)} providers of identities, not one, "
            "that entity_id fits"
        )
    within = "md:IDPSSODescriptor"
    places = Xml.query(
        found[0],
        f"{within}/md:SingleSignOnService"
        f"[@Binding='{Names.BINDING_HTTP_REDIRECT}']/@Location",
    )
    if not places:
        raise ValueError("its metadata has no address for HTTP-Redirect")
    keys = f"{within}/md:KeyDescriptor[not(@use='encryption')]/{IN_METADATA}"
    certificates = [each.text or "" for each in Xml.query(found[0], keys)]
    return _describe(found[0].get("entityID") or "", places[0], certificates)


def _describe(entity_id: str, sso_url: str, certificates: list[str]) -> Description:
    if not certificates:
        raise ValueError("its metadata has no certificate")
    check_https_address(sso_url)
    read = tuple(map(_strip_frame, certificates))
    for each in read:
        try:
            x509.load_der_x509_certificate(base64.b64decode(each, validate=True))
        except (binascii.Error, ValueError):
            raise ValueError("a certificate is none") from None
    return Description(entity_id, sso_url, read)


def _strip_frame(certificate: str) -> str:
    for edge in ("BEGIN", "END"):
        certificate = certificate.replace(f"-----{edge} CERTIFICATE-----", "")
    return "".join(certificate.split())
