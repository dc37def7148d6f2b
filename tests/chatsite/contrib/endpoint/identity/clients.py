"""A client that sends histories, and what they are taken for."""

from bench.endpoint.in_memory import MemoryTarget
from bench.endpoint.wires import Request, Said

LONG = "A reply that no other conversation has, said at some length: " + "word " * 40


def user(text, **rest):
    return {"role": "user", "content": text, **rest}


def reply(text, **rest):
    return {"role": "assistant", "content": text, **rest}


def system(text):
    return {"role": "system", "content": text}


class Client:
    """Sends messages as one user, and gets replies that the test names."""

    def __init__(self, target=None, person=1, **headers):
        self.target = target or MemoryTarget()
        self.person = person
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}

    @property
    def store(self):
        return self.target.stores[self.person]

    @property
    def decision(self):
        return self.target.decisions[-1]

    def send(self, *messages, answer="Yes.", wire="chat", headers=None, **body):
        """An answer is a text or a `Said`; None: the upstream fails."""
        body = {"model": "m", "messages": [*messages], **body}
        request = Request(wire, body, {**self.headers, **(headers or {})})
        if isinstance(answer, str):
            answer = Said("assistant", answer)
        return self.target.send(self.person, request, answer)

    def texts(self, name):
        return self.store.conversations[name].texts
