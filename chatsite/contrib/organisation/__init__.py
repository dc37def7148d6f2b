"""How the people of an organisation log in: with their account there, by OpenID Connect
or SAML, by a proxy that names them, and with a second factor, by django-allauth.
"""
