"""Why a request was as it was: two of a conversation beside each other, where the
provider's cache ends, what caused it, and what each part cost.
"""
