"""Takes pictures of pages and keeps them small: WebP, made by the browser itself."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.servers import Site

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SCHEMES = ("light", "dark")
WIDE, DESKTOP, PHONE = (1440, 900), (1760, 1000), (390, 844)
# The most that a picture may weigh in the repository.
MAX_BYTES = 150_000
QUALITIES = (0.8, 0.65, 0.5)
TO_WEBP = """
    async ([png, quality]) => {
        const image = new Image();
        image.src = `data:image/png;base64,${png}`;
        await image.decode();
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        canvas.getContext("2d").drawImage(image, 0, 0);
        return canvas.toDataURL("image/webp", quality).split(",")[1];
    }
"""


class Camera:
    def __init__(self, browser: Browser, site: Site) -> None:
        self.browser, self.site = browser, site
        # The site's content security policy would forbid it.
        self.converter = browser.new_page()
        self.taken: list[str] = []

    @contextmanager
    def visit(
        self,
        person: str,
        *,
        scheme: str = "light",
        size: tuple[int, int] = WIDE,
        language: str = "en",
    ) -> Iterator[Page]:
        """Open a signed-in browser of one size, colour scheme and language."""
        width, height = size
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            device_scale_factor=2 if size == PHONE else 1,
            has_touch=size == PHONE,
            is_mobile=size == PHONE,
        )
        cookie = {"name": "django_language", "value": language, "url": self.site.url}
        context.add_cookies([cookie])
        page = context.new_page()
        page.goto(f"{self.site.url}/accounts/login/")
        page.fill("[name=username]", person)
        page.fill("[name=password]", person)
        page.click("main button.primary")
        page.wait_for_url(f"{self.site.url}/")
        yield page
        context.close()

    def take(
        self, page: Page, name: str, *, whole: bool = False, part: str = ""
    ) -> None:
        """Take a picture of the window, the `whole` page or the `part` selected."""
        page.mouse.move(0, 0)
        page.wait_for_load_state("load")
        # Animations have ended by then.
        page.wait_for_timeout(500)
        made = page.locator(part).screenshot() if part else None
        png = base64.b64encode(made or page.screenshot(full_page=whole)).decode()
        for quality in QUALITIES:
            made = self.converter.evaluate(TO_WEBP, [png, quality])
            picture = base64.b64decode(made)
            if len(picture) <= MAX_BYTES:
                break
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.webp").write_bytes(picture)
        self.taken.append(name)
