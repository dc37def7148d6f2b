"""The operation of the site: health, logs, system checks, management commands."""
