"""Reports of providers about a conversation, beside this site's own findings."""
