"""daphne with the flags that the site relies on: serve.py -b HOST -p PORT.

With --prepare first it migrates the database and, with DEBUG, makes sure of the user
demo, who may look at the admin if HOST is this machine alone. In one process, because
importing everything is what takes the time.
Under systemd (Type=notify) it reports when it listens, so that others can wait for it,
and that it is not stuck.
"""

import gc
import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    # A socket may stay open without an end; pings find the dead ones.
    "--websocket_timeout=-1",
    "--ping-interval=20",
    "--ping-timeout=20",
    "--http-timeout=60",
    "--application-close-timeout=5",
    "--no-server-name",
]


def read_flag(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else ""


def prepare(host: str, port: str) -> None:
    import django
    from django.core.management import call_command

    django.setup()
    from chatsite import slots
    from chatsite.accounts import names
    from chatsite.llm.local import servers
    from chatsite.ops import demo_user, schema

    # To find that there is nothing to do, the command would read all migrations.
    if schema.find_missing_migrations():
        # Each step makes all models again: without the collector, 260 MB stay.
        gc.enable()
        call_command("migrate", verbosity=0)
    else:
        names.make_all_keys()  # which the command does, too
    demo_user.prepare_demo_user(host)
    # Users of other machines are offered nothing of this one.
    if host in demo_user.OWN_ADDRESSES:
        servers.find_servers(int(port))
        sys.stdout.write(servers.describe_servers())
    sys.stdout.writelines(slots.draw_each("run", host=host, port=port))
    sys.stdout.flush()


def check_schema() -> None:
    import django

    django.setup()
    from chatsite.ops import schema

    schema.refuse_older_schema()


def report() -> None:
    """Tell systemd that the site listens, and from then on that it is not stuck."""
    from twisted.internet.task import LoopingCall

    notify_systemd(b"READY=1")
    if limit := int(os.environ.get("WATCHDOG_USEC", "0")):
        LoopingCall(notify_systemd, b"WATCHDOG=1").start(limit / 3_000_000)


def notify_systemd(state: bytes) -> None:
    """systemd's protocol: one datagram to the socket that the environment names."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # Addresses without a file begin with a NUL byte, written as @.
    address = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(state, address)


def main(arguments: list[str]) -> None:
    # Until the site serves: imports alone would set off the collector 600 times.
    gc.disable()
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)
    from chatsite.environment import load_settings

    load_settings()
    # Before anything imports daphne, which takes the reactor that there is.
    import uvloop
    from twisted.internet import asyncioreactor

    asyncioreactor.install(uvloop.new_event_loop())
    if "--prepare" in arguments:
        arguments.remove("--prepare")
        prepare(*(read_flag(arguments, name) for name in ("-b", "-p")))
    else:
        check_schema()
    from chatsite.ops.extras import check_unnamed_extras

    check_unnamed_extras()
    from daphne import cli
    from twisted.internet import reactor

    from chatsite.ops.logs import AccessLog

    cli.AccessLogGenerator = AccessLog
    reactor.callWhenRunning(gc.enable)
    reactor.callWhenRunning(report)
    cli.CommandLineInterface().run([*FLAGS, *arguments, "chatsite.asgi:application"])


if __name__ == "__main__":
    main(sys.argv[1:])
