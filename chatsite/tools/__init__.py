"""The former place of what tools of operators import; it goes with the next release."""
