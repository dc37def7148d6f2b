"""Check what context.json says of a request, also before Django is set up."""


def check_context(shown, received=None):
    """Check that the parts of context.json sum up; its body was `received`, if it was
    recorded.
    """
    sizes = [part["tokens"] for part in shown["parts"]]
    assert sum(sizes) == shown["tokens"]["estimated"], shown["parts"]
    assert all(size > 0 for size in sizes), shown["parts"]
    assert bool(shown["body_sha256"]) != bool(shown["body_unknown"])
    if received is not None and shown["body_sha256"]:
        assert shown["body_sha256"] in received
