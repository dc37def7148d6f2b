"""Seeded changes of a file of evidence."""

import json
import random

from chatsite.contrib.evidence import verify


class Mutations:
    """Seeded changes of a file: of bits, lines, order, keys, numbers and sections."""

    def __init__(self, data, seed):
        self.data, self.random = data, random.Random(seed)

    def make(self):
        kinds = ("bit", "cut", "piece", "space", "order", "key", "number", "section")
        return getattr(self, f"change_{self.random.choice(kinds)}")()

    def change_bit(self):
        data = bytearray(self.data)
        data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        return bytes(data)

    def change_cut(self):
        return self.data[: self.random.randrange(len(self.data))]

    def change_piece(self):
        start = self.random.randrange(len(self.data))
        end, to = start + self.random.randrange(1, 200), self.random.randrange(3)
        piece = self.data[start:end]
        return self.data[:start] + piece * (0, 2, 3)[to] + self.data[end:]

    def change_space(self):
        at = self.random.choice([0, len(self.data), self.data.index(b",") + 1])
        space = self.random.choice([b" ", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\x00"])
        return self.data[:at] + space + self.data[at:]

    def pick(self, kind):
        """A random object or list of the file, with the file."""
        file, found = json.loads(self.data), []

        def walk(value):
            if isinstance(value, (dict, list)):
                found.append(value)
                members = value.values() if isinstance(value, dict) else value
                for each in members:
                    walk(each)

        walk(file)
        found = [each for each in found if isinstance(each, kind) and each]
        return file, self.random.choice(found)

    def write(self, file):
        return verify.canonical(file).encode()

    def change_order(self):
        file, chosen = self.pick(list)
        self.random.shuffle(chosen)
        return self.write(file)

    def change_key(self):
        file, chosen = self.pick(dict)
        name = self.random.choice([*chosen])
        value = chosen.pop(name)
        if self.random.random() < 0.7:
            chosen[self.random.choice([f"{name}s", name.upper(), "x"])] = value
        return self.write(file)

    def change_number(self):
        file, chosen = self.pick(dict)
        name = self.random.choice([*chosen])
        value = chosen[name]
        if isinstance(value, int) and not isinstance(value, bool):
            chosen[name] = value + self.random.choice([-1, 1, 10**9])
        elif isinstance(value, str):
            chosen[name] = value[::-1] + self.random.choice(["", "a", "\u0301"])
        else:
            chosen[name] = self.random.choice([None, True, [], {}, ""])
        return self.write(file)

    def change_section(self):
        file = json.loads(self.data)
        within = self.random.choice([file, file["windowpane"], file["dialog"]])
        names = [*within] if isinstance(within, dict) else range(len(within))
        one, other = (self.random.choice(names) for _ in range(2))
        if self.random.random() < 0.5:
            within[one], within[other] = within[other], within[one]
        else:
            del within[one]
        return self.write(file)
