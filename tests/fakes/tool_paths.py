"""Paths to the tools of own_tools.py.

The module needs no Django, which benches load later.
"""

PATHS = [
    f"tests.fakes.own_tools.{name}"
    for name in (
        "look_up",
        "write_down",
        "break_down",
        "refuse",
        "hang",
        "hang_once",
        "pour",
        "send_mail",
        "order",
        "meet",
        "post_letter",
        "send_for_parcel",
        "draw",
        "count_up",
    )
]
NAMES = [path.rpartition(".")[2] for path in PATHS]
