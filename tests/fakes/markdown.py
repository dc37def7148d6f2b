"""A long reply with every kind of block, to see how each is shown."""

PARTS = (
    """## Part {n}: what the harbour needs

The ferry leaves at **{n}:40** from pier *{n}*, and `timetable({n})` knows why: the
tide is {n}2 cm higher than [the almanac](https://example.org/{n}) says.
涨潮以后, 船就开了。

""",
    """1. Ask for the *first* boat, number {n}.
2. Pay {n}.50 at the counter, or `POST /tickets/{n}`.
3. Wait:
   - under the roof when it rains,
   - at the railing when it does **not**.

""",
    """```python
def leave(pier: int = {n}) -> str:
    \"\"\"Say goodbye.\"\"\"
    for boat in fleet(pier):  # at most {n}

        if boat.is_full and not boat.waits:
            return f"Boat {{boat.name}} has left pier {{pier}}."
    return "Nobody leaves."
```

""",
    """| pier | boat | leaves | price |
|---|:---|---:|---|
| {n} | *Heron* | {n}:40 | 3.50 |
| {n} | **Tern** | {n}:55 | 4.20 |
| 东 | 苍鹭 | {n}:59 | `free` |

""",
    """> If you are {n} minutes late, you wait for the next one,
> and the sum $a_{n} * b_{n} * c$ is yours to pay.

- [ ] a lamp
- [x] a rope of {n} metres

---

""",
)


def write(size: int) -> str:
    """The first parts that have `size` characters together, or a little more."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(PARTS[len(parts) % len(PARTS)].format(n=len(parts) + 1))
    return "".join(parts) + "That is all there is to say about the harbour."
