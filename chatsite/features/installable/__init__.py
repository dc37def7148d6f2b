"""The site as an installable app: a manifest, icons, and an offline page."""
