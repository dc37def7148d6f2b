"""The pictures of what another client writes: its conversation, and the page of why."""

import json
import urllib.request
from typing import Any

from playwright.sync_api import expect

from .camera import Camera

PERSON = "demo"
SYSTEM = "You plan trips. Today is {}, and it is {} o'clock in Kobe."
FERRY = "I want to see the olive trees of Shodo. When does the ferry from Kobe leave?"
BUDGET = "My budget is 3,200 euros, and I don't fly. What should I see besides?"
NOTES = "\n\n<context>Notes.md: Angel Road can be walked at low tide.</context>"


class Client:
    """Sends its whole history with each request, as clients do."""

    def __init__(self, camera: Camera) -> None:
        made = camera.site.manage("create_key", PERSON, "--name", "Open WebUI")
        self.url = f"{camera.site.url}/v1/chat/completions"
        self.headers = {"authorization": f"Bearer {made.strip()}"}
        self.said: list[dict[str, str]] = []
        self.view = ""

    def ask(self, system: str, text: str) -> None:
        self.said.append({"role": "user", "content": text})
        said = [{"role": "system", "content": system}, *self.said]
        data = json.dumps({"model": "demo", "messages": said}).encode()
        request = urllib.request.Request(self.url, data, self.headers)  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            self.view = answer.headers["x-windowpane-view"]
            reply: Any = json.load(answer)["choices"][0]["message"]
        self.said.append({"role": "assistant", "content": reply["content"]})


def take_all(camera: Camera) -> None:
    client = Client(camera)
    client.ask(SYSTEM.format("Monday", "nine"), FERRY)
    client.ask(SYSTEM.format("Monday", "ten"), BUDGET)
    # As where a client puts what it has found into a message, and takes it out again.
    client.said[0] = {"role": "user", "content": FERRY + NOTES}
    client.ask(SYSTEM.format("Tuesday", "nine"), "Thank you! And what is my budget?")
    with camera.visit(PERSON) as page:
        page.goto(client.view)
        expect(page.locator("#connection")).to_have_attribute("data-state", "open")
        page.locator("#message-6").hover()
        page.locator("#message-6").get_by_text("What the model saw").click()
        expect(page.locator("#context")).to_contain_text("Exactly what was sent")
        camera.take(page, "client-conversation")
        page.get_by_role("link", name="Which conversation, and why").last.click()
        expect(page.locator(".diff").last).to_be_visible()
        camera.take(page, "client-why")
