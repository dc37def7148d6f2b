"""The split page as a user uses it."""

import re
from urllib.parse import urljoin

from playwright.sync_api import expect

from tests.patience import PATIENCE

USER, PASSWORD = "lance", "correct horse battery"
# Where a page leads to, files to keep apart.
LINKS = """() => [...document.querySelectorAll("a[href]:not([download])")]
    .map((link) => link.getAttribute("href").replace(/[?#].*/, ""))
    .filter((path) => path && !/([.](json|md)|[/]csv[/])$/.test(path))"""
# One of many: an id, and what Django shows alike for each table.
ONE = re.compile(r"[0-9a-f-]{8,}|[0-9]+")
ALIKE = re.compile(r"/admin/(?!settings/)[a-z]+/$|/admin/.*/history/$")
RIGHTS_AND_TITLE = """
from django.contrib.auth.models import User
from memory.models import Conversation
User.objects.filter(username="demo").update(is_staff={on}, is_superuser={on})
if {on}:
    print(Conversation.objects.get(owner__username="demo").title)
Conversation.objects.filter(owner__username="demo").update(title={title!r})
"""


class ConversationPage:
    def __init__(self, page, site):
        self.page, self.site = page, site
        page.set_default_timeout(30_000 * PATIENCE)
        self.box = page.locator("#text")
        self.turns = page.locator("#turns .turn")
        self.status = page.locator("#status")
        self.error = page.locator("#composer-error")
        self.right = page.locator("#context")

    def report_to(self, errors):
        # htmx's words for a request in whose place a newer one was sent.
        replaced = ("htmx:afterRequest", "htmx:sendAbort")

        def note(message):
            if message.type not in ("error", "warning"):
                return
            if not message.text.startswith(replaced):
                errors.append(message.text)

        self.page.on("console", note)
        self.page.on("pageerror", lambda error: errors.append(str(error)))

    def sign_in(self, name=USER, password=PASSWORD):
        self.page.goto(f"{self.site.url}/accounts/login/")
        if "/accounts/login/" in self.page.url:
            self.page.fill("[name=username]", name)
            self.page.fill("[name=password]", password)
            self.page.click("main button.primary")
            self.page.wait_for_url(f"{self.site.url}/")

    def create(self, preset="layered"):
        """Make an empty conversation, and open its page."""
        self.open(self.make(preset))

    def make(self, preset="layered"):
        """The address of an empty conversation, made as a script would."""
        cookies = {each["name"]: each["value"] for each in self.page.context.cookies()}
        answer = self.page.request.post(
            f"{self.site.url}/c/",
            form={"preset": preset},
            headers={"X-CSRFToken": cookies["csrftoken"]},
            max_redirects=0,
        )
        return self.site.url + answer.headers["location"]

    def open(self, url):
        self.page.goto(url)
        self.is_live()

    @property
    def url(self):
        return self.page.url.split("?")[0].split("#")[0]

    def is_live(self):
        expect(self.page.locator("#connection")).to_have_attribute("data-state", "open")

    def send(self, text):
        self.box.fill(text)
        self.box.press("Enter")
        expect(self.box).to_have_value("")
        # Without a connection it is hidden at once: the message waits on the page.
        expect(self.page.locator("#pending")).to_be_hidden()

    def say(self, text):
        """Send a message and wait for its reply."""
        count = self.in_state("done").count()
        self.send(text)
        expect(self.in_state("done")).to_have_count(count + 1)

    def in_state(self, state):
        return self.page.locator(f"#turns .turn[data-state={state}]")

    def live_text(self):
        return self.page.locator("#turns .live .body")

    def open_sheet(self, kind):
        """Show the content of a sheet of the right pane, for this page until it is
        reloaded.
        """
        self.right.locator(f".part-{kind}:not([open]) > summary").click()
        return self.right.locator(f".part-{kind}")

    def open_about(self):
        """The figures behind the button of the right pane, and what is under More."""
        self.right.locator(".about:not([open]) > summary").click()
        self.right.locator("[data-key=about-more]:not([open]) > summary").click()
        return self.right.locator(".about")

    def message(self, seq):
        return self.page.locator(f"#message-{seq}")

    def text_of(self, seq):
        return self.message(seq).locator(".body").inner_text()

    def mark(self, seq):
        return self.message(seq).locator(".mark").first

    def act(self, seq, name):
        """Choose one of a message's actions, which show while the mouse is on it."""
        self.message(seq).hover()
        self.message(seq).get_by_text(name, exact=True).click()

    def replace(self, seq):
        """Edit a message in its place, and not in a branch."""
        self.act(seq, "Edit")
        self.page.locator("#branch-edit input").uncheck()

    def memory_settings(self):
        """Open the dialog with the memory settings."""
        self.page.locator("header.bar .menu > summary").click()
        self.page.get_by_role("button", name="Memory settings…").click()
        expect(self.page.locator("#policy .estimate p")).to_be_visible()

    def json(self, name, **query):
        answer = self.page.request.get(f"{self.url}{name}", params=query)
        return answer.json()

    def transcript(self):
        return self.json("transcript.json")["messages"]


def change_demo(site, **values):
    """The title of the demo's conversation before."""
    code = RIGHTS_AND_TITLE.format(**values)
    return site.manage("shell", "--no-imports", "-c", code).strip()


def crawl(page, root):
    """Go to one page of each kind that a link leads to, from the home page and the
    admin on; each kind when it is open."""
    todo, seen = ["/", "/admin/"], set()
    while todo:
        path = todo.pop()
        kind = ALIKE.sub("alike", ONE.sub("one", path))
        if kind in seen:
            continue
        seen.add(kind)
        answer = page.goto(f"{root}{path}")
        assert answer.ok, path
        assert answer.header_value("content-security-policy"), path
        yield kind
        links = {urljoin(page.url, link) for link in page.evaluate(LINKS)}
        todo += (link[len(root) :] for link in links if link.startswith(f"{root}/"))
