"""python -m bench.endpoint.refusals [--rounds N]

Whether the time of a refusal says what is wrong with a key: keys that are wrong, have
expired, were revoked, or whose owner is locked are sent in turns to a site of its own.
The wrong ones are two kinds here: how far these are apart is what the machine does.
"""

import argparse
import http.client
import json
import os
import secrets
import time
from random import Random
from statistics import median, quantiles

from .place import Place, make_place

MAKE = """
import json
from django.contrib.auth import get_user_model
from django.utils import timezone
from chatsite.contrib.endpoint import keys
people = get_user_model().objects
owner = people.get(username="person0")
made = {name: keys.create_api_key(owner, name) for name in ("expired", "revoked")}
locked = people.create_user("locked", is_active=False)
made["locked"] = keys.create_api_key(locked, "locked")
made["expired"][0].expires_at = made["revoked"][0].revoked_at = timezone.now()
for row, _ in made.values():
    row.save()
print(json.dumps({name: key for name, (_, key) in made.items()}))
"""


def make_refused_keys(place: Place) -> dict[str, str]:
    told = place.site.manage("shell", "-c", MAKE)
    wrong = {f"wrong, {n}": f"wp_{secrets.token_urlsafe(32)}" for n in ("a", "b")}
    return {**wrong, **json.loads(told.strip().splitlines()[-1])}


def time_refusals(
    place: Place, refused: dict[str, str], rounds: int
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in refused}
    line = http.client.HTTPConnection("127.0.0.1", place.site.port)
    random, names = Random(1), [*refused]
    for number in range(-10, rounds):
        random.shuffle(names)
        for name in names:
            started = time.perf_counter()
            headers = {"authorization": f"Bearer {refused[name]}"}
            line.request("GET", "/v1/models", headers=headers)
            answer = line.getresponse()
            answer.read()
            if answer.status != 401:
                raise SystemExit(f"{name}: {answer.status}")
            if number >= 0:
                taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    with make_place("http://127.0.0.1:9/v1") as place:
        taken = time_refusals(place, make_refused_keys(place), rounds)
    print(f"{'ms':10}{'p25':>8}{'p50':>8}{'p75':>8}")
    for name, values in taken.items():
        print(f"{name:10}" + "".join(f"{each:8.3f}" for each in quantiles(values)))
    mid = {name: median(values) for name, values in taken.items()}
    apart = abs(mid["wrong, a"] - mid["wrong, b"])
    print(f"medians apart: {max(mid.values()) - min(mid.values()):.3f} ms;", end=" ")
    print(f"of the two wrong ones: {apart:.3f} ms; load: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
