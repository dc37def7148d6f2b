"""Log-in with the account of an organisation, by OpenID Connect and django-allauth.
Only a site with SIGNIN_PROVIDERS loads it.
"""
