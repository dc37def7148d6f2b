"""Copy the pages of the repository to `build/pages`, with the files that they link to.

mkdocs reads one folder, and the pages stand beside their code. Links stay as they are;
one to a folder goes to the README.md in it. `make docs` runs this before mkdocs.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
FOLDERS = ("docs", "chatsite", "memory", "bench", "deploy", "tests")
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(?=\))")


def main():
    shutil.rmtree(PAGES, ignore_errors=True)
    found = [*ROOT.glob("*.md")]
    found += [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
    for page in found:
        copy_page(page)
    shutil.copytree(ROOT / "vendor/mermaid", PAGES / "vendor/mermaid")


def copy_page(page):
    def follow(match):
        target = (page.parent / match[2]).resolve()
        if target.is_dir():
            readme = "README.md" if (target / "README.md").exists() else ""
            return f"{match[1]}{match[2].rstrip('/')}/{readme}{match[3] or ''}"
        if target.suffix != ".md" and target.is_file():
            copy = PAGES / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, copy)
        return match[0]

    copy = PAGES / page.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(LINK.sub(follow, page.read_text()))


if __name__ == "__main__":
    main()
