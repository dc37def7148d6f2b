"""Faults of an upgrade, as the bench of upgrades counts them."""

from bench.upgrades import leave_out_own

BEGIN = "2026-11-27 23:09:30,147 ERROR django.request Internal Server Error: "
OWN = f"{BEGIN}/c/a1/messages/ | ValueError in transcript_pane.py:262 _views < more"
LEFT = (
    "2026-11-27 23:10:14,671 ERROR asyncio Task exception was never retrieved future: "
    "defined at /x/.venv-0.1.0/lib/asgi.py:237> exception=RequestAborted()>"
)
OTHER = f"{BEGIN}/c/a1/ | ProgrammingError in compiler.py:1 execute_sql"
PIN = "/c/a1/memory/messages/1/pin/"


def test_errors_of_the_old_release_do_not_count():
    failed = [(500, "/c/b2/"), (500, PIN), (503, "/c/a1/"), (500, "/c/a1/messages/")]
    others, left = leave_out_own(failed, [OWN, LEFT, OTHER])
    assert others == [OTHER]
    # One line is one page: that of the same conversation.
    assert left == [(500, "/c/b2/"), (503, "/c/a1/"), (500, "/c/a1/messages/")]


def test_other_errors_count():
    new = LEFT.replace(".venv-0.1.0", ".venv")
    assert leave_out_own([(500, PIN)], [OTHER, new]) == ([OTHER, new], [(500, PIN)])
