"""Evidence: a signed file of what a model read, checked without this site.

contents.py collects the file, signing_keys.py signs it; verify.py and verify.html check
it and import nothing of the site. link_evidence.py has the file of a shared link.
"""
