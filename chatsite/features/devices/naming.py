"""The name of a browser, from the few reliable parts of its user agent."""

# By the word that gives each away; the first that is there counts, as a browser also
# gives the names of those that it wants to be taken for.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "CrOS": "ChromeOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
# Real user agents are shorter; the rest is not read.
MOST_CHARS = 500


def name_browser(user_agent: str) -> tuple[str, str]:
    """Return the names of the browser and of its system; "" = unknown."""
    said = user_agent[:MOST_CHARS]
    return _find(BROWSERS, said), _find(SYSTEMS, said)


def _find(names: dict[str, str], said: str) -> str:
    return next((name for word, name in names.items() if word in said), "")
