"""People who use a running site from outside: over HTTP and over the JSON socket."""

import json
import re
import urllib.parse
import urllib.request
import uuid
from http.cookiejar import CookieJar

from websockets.sync.client import connect

from .patience import PATIENCE

TIMEOUT = 20 * PATIENCE


class Person:
    """A new user with an HTTP client."""

    def __init__(self, site, name, password="correct horse battery"):
        self.site = site
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self.cookies),
            urllib.request.HTTPSHandler(context=site.tls),
        )
        # As browsers do; over HTTPS Django wants to know where a form stood.
        self.opener.addheaders = [("Referer", f"{site.url}/")]
        passwords = {"password1": password, "password2": password}
        assert self.post("/accounts/signup/", username=name, **passwords) == "/"

    def get(self, path):
        with self.opener.open(self.site.url + path, timeout=TIMEOUT) as response:
            return response.read().decode()

    def get_json(self, path):
        return json.loads(self.get(path))

    def post(self, path, **fields):
        """Post a form; gives back the address where it led."""
        with self._send(path, fields) as response:
            return urllib.parse.urlparse(response.url).path

    def submit(self, path, **fields):
        """Post a form; gives back the page that came."""
        with self._send(path, fields) as response:
            return response.read().decode()

    def _send(self, path, fields):
        page = self.get("/accounts/login/" if path.startswith("/accounts") else "/")
        token = re.search(r'csrf[^>]+?value="(\w+)"', page) or re.search(
            r"X-CSRFToken[^\w]+(\w+)", page
        )
        form = {"csrfmiddlewaretoken": token[1], **fields}
        data = urllib.parse.urlencode(form).encode()
        return self.opener.open(self.site.url + path, data, timeout=TIMEOUT)

    def create(self, preset="layered"):
        """A new conversation; gives back its path, /c/<uuid>/."""
        return self.post("/c/", title="", preset=preset)

    def chat(self, path, site=None):
        return Chat(self, path, site or self.site)


class Chat:
    """A socket of the JSON subprotocol."""

    def __init__(self, person, path, site):
        cookies = "; ".join(f"{c.name}={c.value}" for c in person.cookies)
        self.connection = connect(
            f"{site.socket_url}/ws{path}",
            origin=person.site.url,
            additional_headers={"Cookie": cookies},
            subprotocols=["windowpane.json"],
            open_timeout=TIMEOUT,
            ssl=site.tls,
        )

    def __enter__(self):
        self.socket = self.connection.__enter__()
        return self

    def __exit__(self, *error):
        self.connection.__exit__(*error)

    def command(self, **values):
        self.socket.send(json.dumps(values))

    def event(self, timeout=TIMEOUT):
        return json.loads(self.socket.recv(timeout))

    def until(self, kind, **wanted):
        """All events up to the first of this kind with these values."""
        seen = []
        while True:
            seen.append(self.event())
            last = seen[-1]
            if last["type"] == kind and wanted.items() <= last.items():
                return seen

    def send(self, text, client_id=None):
        """Send a message; gives back its ack."""
        client_id = client_id or uuid.uuid4().hex
        self.command(type="send", client_id=client_id, text=text)
        return self.until("ack", client_id=client_id)[-1]

    def say(self, text):
        """Send a message and wait for its reply; gives back the end event."""
        return self.until("end", turn=self.send(text)["turn"])[-1]


def text_of(events):
    """A reply as a client puts it together from its frames.

    A frame beyond what is known is left out: the answer to a sync is on its way.
    """
    known, attempt = "", 0
    for event in events:
        if event["type"] != "frame" or event["attempt"] < attempt:
            continue
        if event["attempt"] > attempt:
            known, attempt = "", event["attempt"]
        if event["base"] <= len(known):
            known = known[: event["base"]] + event["tail"]
    return known
