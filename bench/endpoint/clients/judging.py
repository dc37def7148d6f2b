"""The check that a client has finished, and that the site has stored its requests."""

from .provider import PLACES


def judge(told: str, requests: list[dict]) -> str:
    """Return the fault in the client's output or the stored requests; "" if none."""
    results = [f"{place}-42" for place in PLACES]
    if not all(each in told for each in results):
        return f"the client did not finish: {told[-300:]!r}"
    if not all(each["is_proved"] for each in requests):
        return "a body has another hash"
    for request in requests:
        tools = [text for role, text in request["texts"] if role == "tool"]
        last = request["texts"][-1]
        is_whole = len(tools) == len(PLACES) and last[0] == "assistant"
        if is_whole and all(each in last[1] for each in results):
            own = [r for r in requests if r["conversation"] == request["conversation"]]
            went_on = [r["lineage"] for r in own[1:]]
            return "" if {*went_on} == {"continued"} else f"went on as {went_on}"
    return f"the transcript has not all: {[r['texts'] for r in requests]}"[:2000]
