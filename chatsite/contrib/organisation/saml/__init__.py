"""SAML, by python3-saml. Imported only if a provider speaks SAML."""
