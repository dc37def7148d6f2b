"""Files that users attach: read as text and kept until a message takes them."""
