"""Check a file of evidence without its site: `python verify.py FILE KEYS [PROOF]`."""

import base64
import hashlib
import pathlib
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from html import escape
from json import JSONEncoder, loads

OWN, BROKEN = "windowpane", "it has no signature that fits its hashes"
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, DUMP = -121665 * pow(121666, -1, P) % P, JSONEncoder(ensure_ascii=False).encode
BASE = 15112221349535400772501151409588531511454012693041857206046113283949847762202
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def check(is_right: object, text: str) -> None:
    if not is_right:
        raise ValueError(text)


def canonical(value: object) -> str:  # as RFC 8785 writes it
    if isinstance(value, str | None) or isinstance(value, int) and abs(value) < 2**53:
        return DUMP(value)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        pairs = (f"{canonical(name)}:{canonical(value[name])}" for name in names)
        return "{" + ",".join(pairs) + "}"
    check(isinstance(value, list), "a number is too large, or not whole")
    return "[" + ",".join(map(canonical, value)) + "]"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_parts(file: dict, dump=canonical) -> dict[str, str]:
    parts = {}
    for name, value in file.items():
        found = enumerate(value, 1) if isinstance(value, list) else [("", value)]
        found = value.items() if isinstance(value, dict) else found
        parts |= {f"{name} {key}".strip(): digest(dump(v)) for key, v in found}
    return parts


def check_signed(key: bytes, value: bytes, data: bytes) -> None:  # Ed25519, RFC 8032
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        read = (key, value[32:], hashlib.sha512(value[:32] + key + data).digest())
        number, factor, hashed = (int.from_bytes(each, "little") for each in read)
        square = ((y := number % 2**255) ** 2 - 1) * pow(D * y * y + 1, -1, P)
        x = pow(square, (P + 3) // 8, P)
        x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
        point = multiply_point(hashed % L, (x if x % 2 != number >> 255 else P - x, y))
        x, y = add_points(point, multiply_point(factor, (BASE, 4 * pow(5, -1, P) % P)))
        found = (y | x % 2 << 255).to_bytes(32, "little")
        return check(factor < L and found == value[:32], BROKEN)
    return ed25519.Ed25519PublicKey.from_public_bytes(key).verify(value, data)


def add_points(p: tuple, q: tuple) -> tuple:
    t = D * p[0] * p[1] * q[0] * q[1]
    x, y = p[0] * q[1] + p[1] * q[0], p[1] * q[1] + p[0] * q[0]
    return x * pow(1 + t, -1, P) % P, y * pow(1 - t, -1, P) % P


def multiply_point(number: int, point: tuple) -> tuple:
    half = multiply_point(number >> 1, add_points(point, point)) if number else (0, 1)
    return add_points(half, point) if number % 2 else half


def check_signature(file: dict, own: dict, keys: dict) -> str:
    site, ours, day, value = own["site"], keys["site"], own["signed_at"], own["value"]
    key = {each["kid"]: each for each in keys["keys"]}.get(own["kid"])
    check(key and site == ours, f"it is signed by {site}, not with a key of {ours}")
    check(len(value) == 128 and value == bytes.fromhex(value).hex(), BROKEN)
    raw, bare = base64.urlsafe_b64decode(key["x"] + "="), {**own, "value": ""}
    check_signed(raw, bytes.fromhex(value), canonical(bare).encode())
    found, signed = digest_parts(file), own["parts"]
    wrong = [name for name in found | signed if found.get(name) != signed.get(name)]
    check(digest(canonical(file)) == own["sha256"], f"changed: {', '.join(wrong[:9])}")
    times = (day, key["created_at"], key["retired_at"] or "9999-01-01T00:00:00Z")
    at, made, ended = map(datetime.fromisoformat, times)
    check(made - timedelta(0, 300) < at, f"it says {day}, before its key was made")
    check(at - timedelta(0, 300) < ended, f"it says {day}, after its key was retired")
    check(at - timedelta(1) < datetime.now(UTC), f"it says {day}, which is to come")
    note = f" (its key was retired on {times[2][:10]})" if key["retired_at"] else ""
    return f"signed by {site} on {day[:10]} at {day[11:16]} UTC{note}"


def check_request(file: dict) -> str:
    own, request, said = file[OWN], file[OWN]["request"], []
    if request["missing"]:
        return f"the request is not rebuilt: {request['missing']}"
    body = "".join(own["images"].get(piece, piece) for piece in request["body"])
    check(digest(body) == request["sha256"], "the request has another hash")
    loads(body, object_hook=lambda each: said.extend(map(str, each.values())))
    all_said, whole = "\n".join(said), [d for d in file["dialog"] if d[OWN]["is_whole"]]
    texts = {f"message {d[OWN]['seq']}": d["body"] for d in whole} | own["sections"]
    for name, text in texts.items():
        is_sent = text in all_said or escape(text, quote=False) in all_said
        check(is_sent, f"the request does not have {name}")
    return "the request rebuilds to its hash"


def count_messages(file: dict) -> str:
    own, rows = file[OWN], [each[OWN] for each in file["dialog"]]
    total, sent = own["messages"], own["request"]["kind"].replace("next", "to be sent")
    found = Counter(row["place"] for row in rows if row["place"] != "reply")
    read = {(s[OWN]["version"], n) for s in file["analysis"] for n in s["dialog"]}
    used = {(r["version"], n) for n, r in enumerate(rows) if r["place"] == "summary"}
    check(used <= read, "a message is in a summary that did not read it")
    size = len({version for version, _ in used})
    of = f"{COUNTS[size] if size < 9 else size} summar{'y' if size == 1 else 'ies'}"
    words = {"sent": sent, "summary": f"in {of}", "owner": "left out by their owner"}
    words |= {"held": "held by the provider", "rule": "left out by a rule"}
    words["erased"] = "erased"
    check(found == own["account"], "the account is not that of the messages")
    check(total == sum(found[place] for place in words), "a message has no place")
    said = ", ".join(f"{found[n]} {words[n]}" for n in words if found[n]) or "none"
    return f"{total} of {total} messages accounted for: {said}"


def check_root(data: bytes, proof: dict, own: dict) -> str:  # as RFC 6962 hashes
    root = hashlib.sha256(b"\0" + hashlib.sha256(data).digest()).digest()
    for side, other in proof.get("path", ()):
        pair = (bytes.fromhex(other), root)[:: 1 if side == "left" else -1]
        root = hashlib.sha256(b"\1" + b"".join(pair)).digest()
    check(root.hex() == proof.get("root"), "the proof does not lead to its root")
    return f"in the root of {own['signed_at'][:10]}, {proof['root']}"


def verify(data: bytes, keys: bytes, *more: bytes) -> tuple[bool, str]:
    try:
        file = loads(data.decode())
        check(canonical(file).encode() == data, "it is not in its canonical form")
        own = file.pop("windowpane_signature", {})
        said = [check_signature(file, own, loads(keys)), check_request(file)]
        said += count_messages(file), *(check_root(data, loads(p), own) for p in more)
        return True, "; ".join(said)
    except Exception as error:  # noqa: BLE001
        return False, str(error) if isinstance(error, ValueError) else BROKEN


if __name__ == "__main__":
    outcome = verify(*(pathlib.Path(name).read_bytes() for name in sys.argv[1:4]))
    sys.exit(not (sys.stdout.write(f"{outcome[1]}\n") and outcome[0]))
