"""SAML, by python3-saml. Loaded where a provider speaks it."""
