"""The film at the top of the README, an animated WebP of frames from the browser.

A summary is made, a user changes a word of it, the model believes them, and without the
summary it does not know. Usage: python -m scripts.film
"""

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.servers import Site, find_chromium

from .camera import FOLDER, TO_WEBP, Camera

SIZE = (1200, 720)
QUALITY = 0.48
MAX_BYTES = 1_500_000
# While something moves, a frame is shown so long; what is to be read stands longer.
MOVING_MS, READING_MS = 200, 1_400
# Frames of the messages before the first summary, and of the fold.
BEFORE, FOLD = 5, 9
PERSON = "demo"


@dataclass(frozen=True, slots=True)
class Frame:
    png: bytes
    milliseconds: int


def take_film(page: Page) -> list[Frame]:
    """Film the demo as users watch it, without the waiting."""
    page.locator("form[action='/demo/'] button").click()
    page.wait_for_url("**/c/*/?guide")
    return [*_watch_the_fold(page), *_change_the_summary(page), *_ask_again(page)]


def _watch_the_fold(page: Page) -> list[Frame]:
    """Film the last moments before the first summary, and what it does to the page."""
    frames: list[bytes] = []
    divider = page.locator("#turns .divider")
    while not divider.count():
        frames = [*frames[1 - BEFORE :], page.screenshot()]
    frames += [page.screenshot() for _ in range(FOLD)]
    page.wait_for_selector(".counterpart")
    lit = Frame(page.screenshot(), READING_MS)
    return [*(Frame(png, MOVING_MS) for png in frames), lit]


def _change_the_summary(page: Page) -> list[Frame]:
    page.locator("#guide-act").click(timeout=60_000)
    expect(page.locator("#context .in-place textarea")).to_be_focused()
    frames = [Frame(page.screenshot(), READING_MS)]
    # One word, typed letter by letter.
    for letter in "Nara":
        page.keyboard.type(letter)
        frames.append(Frame(page.screenshot(), MOVING_MS))
    page.locator("#context .in-place .primary").click()
    answer = page.locator("#turns .turn", has_text="Where am I going?").last
    expect(answer).to_contain_text("Nara")
    page.wait_for_load_state("networkidle")
    return [*frames, Frame(page.screenshot(), READING_MS)]


def _ask_again(page: Page) -> list[Frame]:
    """Film the question without the summaries: two answers are the last frame."""
    expect(page.locator("#guide-text")).to_contain_text("Ask again")
    page.locator(".sheet:has(.part-summaries) > .switch").click()
    ask = page.locator("#desk").get_by_role("button", name="Ask again")
    expect(ask).to_be_visible()
    frames = [Frame(page.screenshot(), READING_MS)]
    ask.click()
    expect(page.locator(".beside .trial .mark")).to_have_text("Complete")
    page.wait_for_load_state("networkidle")
    return [*frames, Frame(page.screenshot(), 2 * READING_MS)]


def join_frames(frames: list[tuple[bytes, int]], size: tuple[int, int]) -> bytes:
    """Return an animated WebP of still ones.

    See https://developers.google.com/speed/webp/docs/riff_container.
    """
    canvas = b"".join((each - 1).to_bytes(3, "little") for each in size)
    # It has an animation; white behind it, repeated for as long as it is seen.
    chunks = [_chunk(b"VP8X", bytes([2, 0, 0, 0]) + canvas)]
    chunks.append(_chunk(b"ANIM", b"\xff\xff\xff\xff" + bytes(2)))
    for webp, milliseconds in frames:
        place = bytes(6) + canvas + milliseconds.to_bytes(3, "little")
        chunks.append(_chunk(b"ANMF", place + bytes([2]) + _find_image(webp)))
    return _chunk(b"RIFF", b"WEBP" + b"".join(chunks))


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)


def _find_image(webp: bytes) -> bytes:
    """Return the chunk with the picture of a still one."""
    at = 12
    while webp[at : at + 4] not in (b"VP8 ", b"VP8L"):
        length = int.from_bytes(webp[at + 4 : at + 8], "little")
        at += 8 + length + length % 2
    length = int.from_bytes(webp[at + 4 : at + 8], "little")
    return webp[at : at + 8 + length + length % 2]


def main() -> None:
    expect.set_options(timeout=30_000)  # other work may keep the machine busy
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        env = {
            "DEBUG": "true",
            "DATABASE_URL": f"sqlite:///{folder}/site.sqlite3",
            "OPENAI_API_KEY": "",
            "DEMO_TOKENS_PER_SECOND": "90",
        }
        site = Site(env)
        site.manage("migrate", "--verbosity", "0")
        site.manage("create_user", PERSON, PERSON)
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"]
        )
        with site:
            camera = Camera(browser, site)
            with camera.visit(PERSON, size=SIZE) as page:
                frames = take_film(page)
            webps = [
                (_convert(camera, frame.png), frame.milliseconds) for frame in frames
            ]
        browser.close()
    film = join_frames(webps, SIZE)
    if len(film) > MAX_BYTES:
        sys.exit(f"The film has {len(film):,} bytes, more than {MAX_BYTES:,}.")
    path = Path(FOLDER) / "film.webp"
    path.write_bytes(film)
    seconds = sum(milliseconds for _, milliseconds in webps) / 1000
    sys.stdout.write(f"{path}: {seconds:.1f} s, {len(film):,} bytes\n")


def _convert(camera: Camera, png: bytes) -> bytes:
    encoded = base64.b64encode(png).decode()
    made = camera.converter.evaluate(TO_WEBP, [encoded, QUALITY])
    return base64.b64decode(made)


if __name__ == "__main__":
    main()
