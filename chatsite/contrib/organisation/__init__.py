"""Log-in for the users of an organisation, by django-allauth.

They log in with their account there (OpenID Connect or SAML) or by the header of a
trusted proxy, and with a second factor.
"""
