"""Log-in with the account of an organisation, by OpenID Connect, and a second factor:
both by django-allauth. Only a site with SIGNIN_PROVIDERS or SECOND_FACTOR loads it.
"""
