"""For those who run the site: health, logs, system checks, management commands."""
