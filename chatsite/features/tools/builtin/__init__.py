"""The tools that come with the site."""
