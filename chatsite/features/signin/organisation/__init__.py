"""Log-in with the account of an organisation, by OpenID Connect or SAML, and a second
factor, by django-allauth. Only a site with SIGNIN_PROVIDERS or SECOND_FACTOR loads it.
"""
