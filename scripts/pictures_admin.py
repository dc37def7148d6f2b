"""The pictures of the admin: one review from start to finish, as in docs/admin.md."""

import re

from playwright.sync_api import Page, expect

from .camera import DESKTOP, SCHEMES, Camera
from .pictures_page import make_compactions

REVIEWER, CLERK = "reviewer", "clerk"
# All that may be done, and numbers alone.
STAFF = {
    REVIEWER: (
        *("view_metadata", "read_content"),
        *("export_conversations", "purge_conversations"),
    ),
    CLERK: ("view_metadata",),
}
MAKE_STAFF = """
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
user = get_user_model().objects.create_user({name!r}, password={name!r}, is_staff=True)
user.user_permissions.set(Permission.objects.filter(codename__in={codenames!r}))
"""
# A complaint about the reply whose request is shown, and one reply that was good.
MARK_REPLIES = """
from chatsite.features.feedback.services import give_feedback
from memory.models import Conversation
row = Conversation.objects.get(pk={pk})
give_feedback(row, 4, "good")
give_feedback(row, 30, "bad", "It should have named the hotel, too.")
"""
# Beginnings of the conversation that is reviewed, to draw from.
BRANCH = """
from chatsite.turns.copying.copies import branch_conversation
from memory.models import Conversation
row = Conversation.objects.get(pk={pk})
for seq in range(14, 30, 2):
    branch_conversation(row, seq)
"""
# Name of the picture, address below /admin/, and whether it shows the whole page;
# {pk} is the conversation that is reviewed.
PLACES = (
    ("index", "", False),
    ("conversations", "memory/conversation/", False),
    ("conversation", "memory/conversation/{pk}/change/", True),
    ("summaries", "memory/summary/", False),
    ("timeline", "memory/conversation/{pk}/timeline/", True),
    ("transcript", "memory/conversation/{pk}/timeline/?tab=transcript", False),
    ("view", "memory/conversation/{pk}/timeline/?tab=view", False),
    ("raw", "memory/conversation/{pk}/timeline/?tab=raw", False),
    ("log", "memory/conversation/{pk}/timeline/?tab=log", False),
    ("feedback", "feedback/feedback/", False),
    ("request", "memory/conversation/{pk}/request/30/", False),
    ("figures", "memory/conversation/{pk}/figures/", False),
    ("experiments", "memory/conversation/{pk}/experiments/", False),
    ("experiment", "memory/conversation/{pk}/experiments/1/", False),
    ("sample", "experiments/sample/1/change/", False),
    ("erase", "memory/conversation/{pk}/purge/", False),
    ("reviews", "desk/review/", False),
    ("tombstones", "desk/tombstone/", False),
    ("access-log", "desk/accessevent/", False),
    ("turns", "chat/turn/", False),
    ("calls", "memory/modelcall/", False),
    ("users", "chat/allowance/", False),
)
MASKED = ("conversations", "timeline")


def take_all(camera: Camera) -> None:
    for name, codenames in STAFF.items():
        code = MAKE_STAFF.format(name=name, codenames=codenames)
        camera.site.manage("shell", "--no-imports", "-c", code)
    for _ in range(2):
        make_compactions(camera)
    with camera.visit(REVIEWER) as page:
        pk = _review(camera, page)
    camera.site.manage("shell", "--no-imports", "-c", MARK_REPLIES.format(pk=pk))
    for scheme in SCHEMES:
        with camera.visit(REVIEWER, scheme=scheme, size=DESKTOP) as page:
            for name, place, whole in PLACES:
                _go(camera, page, place, pk)
                camera.take(page, f"admin-{name}-{scheme}", whole=whole)
    with camera.visit(CLERK, size=DESKTOP) as page:
        for name, place, whole in PLACES:
            if name in MASKED:
                _go(camera, page, place, pk)
                camera.take(page, f"admin-{name}-masked", whole=whole)


def _go(camera: Camera, page: Page, place: str, pk: int) -> None:
    page.goto(f"{camera.site.url}/admin/{place.format(pk=pk)}")


def _review(camera: Camera, page: Page) -> int:
    """Try a policy, mark the demo conversation reviewed, erase another one."""
    _go(camera, page, "memory/conversation/", 0)
    links = page.locator("#result_list tbody th a")
    # The newest first: the two that were just made, then the seeded one.
    erased, _, reviewed = [
        int(re.search(r"/(\d+)/", links.nth(n).get_attribute("href"))[1])
        for n in range(3)
    ]
    _try_a_policy(camera, page, reviewed)
    camera.site.manage("shell", "--no-imports", "-c", BRANCH.format(pk=reviewed))
    _try_a_sample(camera, page)
    _go(camera, page, "memory/conversation/{pk}/change/", reviewed)
    page.fill("#review_note", "All facts of the transcript are in v4.")
    page.get_by_role("button", name="Mark reviewed").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    _erase(camera, page, erased)
    return reviewed


def _try_a_policy(camera: Camera, page: Page, pk: int) -> None:
    _go(camera, page, "memory/conversation/{pk}/experiments/", pk)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/experiments/1/")
    expect(page.locator(".experiment-outcome.experiment-done")).to_be_visible(
        timeout=60_000
    )


def _try_a_sample(camera: Camera, page: Page) -> None:
    _go(camera, page, "experiments/sample/add/", 0)
    page.fill("[name=number]", "8")
    page.fill("[name=seed]", "7")
    page.fill("[name=least]", "10")
    page.select_option("[name=form-0-preset]", "langgraph")
    page.select_option("[name=form-1-preset]", "langchain")
    page.get_by_role("button", name="Estimate").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/experiments/sample/1/change/")
    expect(page.locator(".experiment-progress")).to_have_count(0, timeout=120_000)


def _erase(camera: Camera, page: Page, pk: int) -> None:
    _go(camera, page, "memory/conversation/{pk}/purge/", pk)
    page.fill("[name=reason]", "Its owner asked for it on 20 November.")
    page.fill("[name=code]", page.locator(".review-code").inner_text())
    page.locator(".submit-row input").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
