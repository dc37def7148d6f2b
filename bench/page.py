"""Costs of the pages in the browser: paints, bytes, a streamed reply, a second answer,
a replay, a long way up.

Chromium's own figures, of a site as it is deployed (static files collected, no DEBUG),
with the fake provider in a process of its own. Usage: python -m bench.page [characters]
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.pages import ConversationPage
from tests.servers import Site, find_chromium

from .provider import running_provider

USER, PASSWORD = "bench", "correct horse battery"
MESSAGES = 10_000
SOME_MESSAGES = 114
DELAY = 0.01  # seconds from word to word: a quick model
RUNS = 5
REPLAYED = 50
MAKE = """
from django.contrib.auth import get_user_model
from bench.long_conversation import make
owner = get_user_model().objects.get(username={user!r})
print(make(owner, {size}).uuid)
"""
FIRST_PAINT = """() => Math.round(
    performance.getEntriesByName("first-contentful-paint")[0].startTime)"""
RESOURCES = """() => performance.getEntriesByType("resource").map(
    ({ name, encodedBodySize, decodedBodySize }) =>
        [name, encodedBodySize, decodedBodySize])"""
COUNT_SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.push(entry.value);
    }).observe({ type: "layout-shift" });
}"""
# From the key to the next frame that shows the message.
COUNT_BUBBLE = """() => {
    window.bubbles = [];
    const pane = document.getElementById("transcript");
    document.getElementById("text").addEventListener("keydown", ({ key, target }) => {
        if (key !== "Enter") return;
        const started = performance.now();
        const text = target.value;
        const look = () => {
            const said = [...pane.querySelectorAll(".message.user .body")];
            if (!said.some((each) => each.textContent.includes(text)))
                return requestAnimationFrame(look);
            bubbles.push(performance.now() - started);
        };
        requestAnimationFrame(look);
    }, true);
}"""
# From a click on Ask again until the second answer has words on the screen.
COUNT_SECOND = """() => {
    window.seconds = [];
    addEventListener("click", ({ target }) => {
        if (!target.closest("#desk .primary")) return;
        const started = performance.now();
        const last = () => [...document.querySelectorAll(".beside")].pop();
        const known = last();
        const look = () => {
            const said = last() !== known && last()?.querySelector(".trial .body");
            if (!said?.textContent) return requestAnimationFrame(look);
            seconds.push(performance.now() - started);
        };
        requestAnimationFrame(look);
    }, true);
}"""
# Plays all moments at four times the speed; the times from frame to frame.
PLAY_ALL = """() => new Promise((resolve) => {
    const play = document.getElementById("replay-play");
    const slider = document.getElementById("moment");
    const label = play.textContent;
    const frames = [];
    document.getElementById("replay-fast").click();
    play.click();
    let last = performance.now();
    requestAnimationFrame(function look(now) {
        frames.push(now - last);
        last = now;
        const isOver = play.textContent === label && slider.value === slider.max;
        isOver ? resolve(frames) : requestAnimationFrame(look);
    });
})"""
WHEN_READY = """() => Math.round(
    performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd)"""
LAST_TURN = "() => document.querySelector('#turns > .turn:last-of-type').outerHTML"
# Goes to the top; how long the next page takes, and how far what was there has moved.
GO_UP = """async () => {
    const scroller = document.getElementById("transcript");
    const count = () => document.querySelectorAll("#turns .turn").length;
    const before = count();
    const mark = document.querySelector("#turns .message");
    scroller.scrollTop = 0;
    const top = mark.getBoundingClientRect().top;
    const started = performance.now();
    while (count() === before) await new Promise(requestAnimationFrame);
    const ms = performance.now() - started;
    await new Promise((done) => setTimeout(done, 300));
    return [ms, Math.abs(mark.getBoundingClientRect().top - top)];
}"""


def show(name: str, figure: str) -> None:
    print(f"| {name} | {figure} |", flush=True)


@contextmanager
def running_site(folder: Path, provider_url: str, **more: str) -> Iterator[Site]:
    env = {
        "DEBUG": "false",
        "SECRET_KEY": "only-for-this-bench-" * 3,
        "ALLOWED_HOSTS": "127.0.0.1",
        "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
        "STATIC_ROOT": str(folder / "static"),
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": provider_url,
        "CHAT_MODEL": "ok",
        "SUMMARY_MODEL": "ok",
        "EXTRAS": "lab",
        **more,
    }
    site = Site(env)
    site.is_warm = False
    site.manage("migrate", "--verbosity", "0")
    site.manage("collectstatic", "--no-input", "--verbosity", "0")
    site.manage("create_user", USER, PASSWORD)
    with site:
        yield site


def make_conversation(site: Site, size: int) -> str:
    """Return the address of a conversation of that many messages."""
    made = site.manage("shell", "-v0", "-c", MAKE.format(user=USER, size=size))
    return f"{site.url}/c/{made.strip()}/"


def sign_in(context: BrowserContext, site: Site) -> Page:
    page = context.new_page()
    page.goto(f"{site.url}/accounts/login/")
    page.fill("[name=username]", USER)
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")
    page.wait_for_url(f"{site.url}/")
    return page


def open_conversation(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#connection")).to_have_attribute("data-state", "open")
    page.wait_for_load_state("networkidle")


def measure_paint(browser: Browser, name: str, address: str, cookies: list) -> None:
    """First contentful paint, each time in a browser that has nothing cached."""
    times = []
    for _ in range(RUNS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies(cookies)
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        times.append(page.evaluate(FIRST_PAINT))
        context.close()
    median = statistics.median(times)
    show(f"first contentful paint, {name}", f"{median:.0f} ms, at most {max(times)}")


def measure_opening(browser: Browser, name: str, address: str, cookies: list) -> None:
    """Requests, and until scripts have run and the socket is open; nothing cached."""
    ready, live, counts = [], [], set()
    for _ in range(RUNS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_cookies(cookies)
        page = context.new_page()
        requests: list[str] = []
        page.on("request", lambda request, found=requests: found.append(request.url))
        page.on("websocket", lambda socket, found=requests: found.append(socket.url))
        started = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.wait_for_selector("#connection[data-state=open]", state="attached")
        live.append((time.perf_counter() - started) * 1000)
        page.wait_for_load_state("networkidle")
        ready.append(page.evaluate(WHEN_READY))
        counts.add(len(requests))
        context.close()
    figures = (
        f"{statistics.median(ready):.0f} ms, live {statistics.median(live):.0f} ms"
    )
    show(f"scripts have run, {name}", f"{figures}, {max(counts)} requests")


def measure_bubble(page: Page) -> None:
    page.evaluate(COUNT_BUBBLE)
    for number in range(2 * RUNS):
        page.fill("#text", f"Message {number} of the bench")
        page.press("#text", "Enter")
        expect(page.locator("#turns .turn")).to_have_count(number + 1)
        page.wait_for_selector(".turn:last-of-type[data-state=done]", state="attached")
    found = page.evaluate("bubbles")
    figures = f"{statistics.median(found):.0f} ms, at most {max(found):.0f}"
    show("from Enter to one's own message", figures)


def measure_second_answer(page: Page) -> None:
    """Edit the instructions in the pane and ask again: two clicks each time."""
    page.locator(".part-system > summary").click()
    page.evaluate(COUNT_SECOND)
    for number in range(2 * RUNS):
        page.locator(".part-system pre").first.click()
        page.locator(".in-place textarea").fill(f"Answer in {number + 3} words.")
        page.locator("#desk .primary").click()
        page.wait_for_function("(n) => seconds.length > n", arg=number)
        page.wait_for_selector(".trial[aria-busy]", state="detached")
        page.wait_for_load_state("networkidle")
    found = page.evaluate("seconds")
    figures = f"{statistics.median(found):.0f} ms, at most {max(found):.0f}"
    show("from Ask again, which stores an edit first, to the answer", figures)


def measure_replay(page: Page) -> None:
    """Replay a conversation at four times the speed, from frame to frame."""
    count = page.locator("#turns .turn").count()
    for number in range(count, REPLAYED):
        page.fill("#text", f"Message {number} of the bench")
        page.press("#text", "Enter")
        expect(page.locator("#turns .turn[data-state=done]")).to_have_count(number + 1)
    open_conversation(page, page.url)
    page.click("#replay-start")
    page.wait_for_load_state("networkidle")
    frames = page.evaluate(PLAY_ALL)[1:]
    late = sum(each > 25 for each in frames) / len(frames)
    p95 = statistics.quantiles(frames, n=20)[-1]
    rate = 1000 * len(frames) / sum(frames)
    figures = (
        f"{statistics.median(frames):.1f} ms, p95 {p95:.1f}, at most {max(frames):.0f}"
    )
    show(
        f"from frame to frame while {REPLAYED} turns are replayed",
        f"{figures}; {rate:.0f} frames a second, {late:.1%} of them late",
    )
    page.click("#replay-end")


def measure_bytes(page: Page) -> None:
    """Return the bytes of the scripts and styles that the split page loads."""
    sums = {"own script": [0, 0], "own style": [0, 0], "htmx": [0, 0]}
    for name, sent, whole in page.evaluate(RESOURCES):
        path = urlparse(name).path
        kind = "htmx" if "django_htmx" in path else ""
        kind = kind or ("own script" if path.endswith(".js") else "")
        kind = kind or ("own style" if path.endswith(".css") else "")
        if kind:
            sums[kind] = [sums[kind][0] + sent, sums[kind][1] + whole]
    for kind, (sent, whole) in sums.items():
        size = f"{whole / 1000:.1f} kB, {sent / 1000:.1f} kB as it travels"
        show(f"{kind} of the split page", size)


def stream(page: Page, chars: int, domain: str) -> dict[str, float]:
    """The main thread's seconds while a reply comes in, by this clock."""
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable", {"timeDomain": domain})

    def read() -> dict[str, float]:
        found = cdp.send("Performance.getMetrics")["metrics"]
        return {entry["name"]: entry["value"] for entry in found}

    page.wait_for_load_state("networkidle")
    # Nothing asks the page how it goes until it is over: that would be measured too.
    count = len(messages(page))
    before, started = read(), time.perf_counter()
    page.fill("#text", f"mode=markdown:{chars}:{DELAY}")
    page.press("#text", "Enter")
    while len(messages(page)) < count + 2 or messages(page)[-1]["state"] != "done":
        time.sleep(0.5)
    seconds, after = time.perf_counter() - started, read()
    cdp.detach()
    names = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    return {"seconds": seconds, **{name: after[name] - before[name] for name in names}}


def messages(page: Page) -> list:
    return page.request.get(f"{page.url}transcript.json").json()["messages"]


def measure_stream(page: Page, chars: int) -> None:
    page.evaluate(COUNT_SHIFTS)
    for domain, clock in (("timeTicks", "wall clock"), ("threadTicks", "CPU")):
        spent = stream(page, chars, domain)
        total = spent.pop("seconds")
        parts = ", ".join(
            f"{name.removesuffix('Duration').lower()} {value / total:.1%}"
            for name, value in spent.items()
        )
        show(f"main thread during {total:.0f} s of reply, by {clock}", parts)
    shifts = page.evaluate("shifts")
    show("layout shifts, summed up", f"{sum(shifts):.4f} in {len(shifts)}")
    expect(page.locator("#turns .turn").last).to_have_attribute("data-state", "done")
    streamed = page.evaluate(LAST_TURN)
    open_conversation(page, page.url)
    same = streamed == page.evaluate(LAST_TURN)
    show("DOM of the streamed turn", "equals the loaded one" if same else "DIFFERS")


def measure_way_up(page: Page, address: str) -> None:
    open_conversation(page, address)
    found = [page.evaluate(GO_UP) for _ in range(10)]
    times, moved = zip(*found, strict=True)
    median = f"{statistics.median(times):.0f} ms, at most {max(times):.0f}"
    show("the next turns on the way up, until they are there", median)
    show("what was on the screen moved by", f"{max(moved):.0f} px at most")


def main(chars: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_provider() as provider_url,
        running_site(Path(folder), provider_url) as site,
        sync_playwright() as playwright,
    ):
        some, long = (
            make_conversation(site, size) for size in (SOME_MESSAGES, MESSAGES)
        )
        options = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = sign_in(context, site)
        opened = ConversationPage(page, site)
        opened.create()
        address = opened.url
        cookies = context.cookies()
        measure_paint(browser, "login", f"{site.url}/accounts/login/", [])
        measure_paint(browser, "home", f"{site.url}/", cookies)
        measure_paint(browser, "empty split page", address, cookies)
        measure_paint(browser, f"split page, {MESSAGES:,} messages", long, cookies)
        measure_opening(browser, f"{SOME_MESSAGES} messages", some, cookies)
        open_conversation(page, address)
        measure_bubble(page)
        measure_second_answer(page)
        measure_bytes(page)
        measure_stream(page, chars)
        measure_way_up(page, long)
        opened.create()
        measure_replay(page)
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16_384)
