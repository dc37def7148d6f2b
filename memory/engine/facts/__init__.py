"""What a person says of themselves, and how it is found."""
