"""A quiz on a shared link: readers guess before they see what the model saw.

services.py counts the guesses; chatsite.features.sharing has the link and its page.
"""
