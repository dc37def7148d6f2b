"""What rules and facts have in common: both are statements of a person, a part of a
message by its place in the text, or what the person wrote in its place.
"""
