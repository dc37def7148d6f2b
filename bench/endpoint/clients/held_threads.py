"""Conversations that the provider holds, by OpenAI's and Anthropic's SDK.

Usage: python held_threads.py SITE KEY OTHER_KEY, with SDKs that are unchanged. A line
that begins with CONTROL asks the bench to do something to the provider, and waits.
"""

import concurrent.futures
import sys

import anthropic
import openai

SITE, KEY, OTHER_KEY = sys.argv[1:]
BETA = "message-threads-2026-08-12"
ASKED: dict = {"model": "claude-sonnet-5-5", "max_tokens": 50}
BOUND = {"x-windowpane-mode": "bound"}


def control(what: str) -> None:
    print(f"CONTROL {what}", flush=True)
    sys.stdin.readline()


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{found!r} in place of {wanted!r}")


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def connect(key: str, **more) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=SITE, api_key=key, **more)


@anthropic.beta_tool
def add(x: int) -> str:
    """Add one.

    Args:
        x: the number.
    """
    return f"got {x + 1}"


def begin(name: str, client: anthropic.Anthropic):
    thread = client.beta.messages.thread(**ASKED, system=f"You are {name}.")
    thread.send(user(f"{name}: one?"))
    return thread


def run_thread(client) -> None:
    thread = begin("thread", client)
    thread.send(user("Two?"))
    thread.send(user("Three?"))


def run_stream(client) -> None:
    thread = begin("stream", client)
    with thread.stream(user("Two?")) as stream:
        stream.get_final_message()


def run_tools(client) -> None:
    control("tools")
    asked = [user("tools: add, please.")]
    runner = client.beta.messages.tool_runner(**ASKED, tools=[add], messages=asked)
    runner.until_done()


def run_expired(client) -> None:
    thread = begin("expired", client)
    control("expire")
    thread.send(user("Two?"))
    control("forget")
    thread.send(user("Three?"))


def run_forked(client) -> None:
    thread = begin("forked", client)
    other = thread.fork()
    thread.send(user("Two?"))
    other.send(user("Three?"))
    other.send(user("Four?"))
    thread.send(user("Five?"))


def continue_once(client, message_id: str, text: str) -> str:
    thread = {"type": "continue", "previous_message_id": message_id}
    asked = {**ASKED, "messages": [user(text)], "thread": thread, "betas": [BETA]}
    try:
        client.beta.messages.create(**asked)
    except anthropic.APIStatusError as error:
        return error.body["error"]["details"]["error_code"]
    return ""


def run_at_once(client) -> None:
    message_id = begin("at once", client).previous_message_id
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(
            lambda text: continue_once(client, message_id, text), ("A?", "B?")
        )
    expect(sorted(found), ["", "thread_already_continued"])


def run_other_user(client) -> None:
    message_id = begin("owner", client).previous_message_id
    for name in (message_id, "msg_guessed"):
        expect(continue_once(connect(OTHER_KEY), name, "?"), "thread_not_found")


def run_bound(_client) -> None:
    client = connect(KEY, default_headers=BOUND)
    try:
        begin("refused", client)
        raise SystemExit("a thread in bound mode")
    except anthropic.BadRequestError as error:
        expect(error.response.headers["x-windowpane-held"], "refused")
    control("tools")
    asked = [user("bound tools: add, please.")]
    runner = client.beta.messages.tool_runner(**ASKED, tools=[add], messages=asked)
    runner.until_done()


def run_responses(_client) -> None:
    client = openai.OpenAI(base_url=f"{SITE}/v1", api_key=KEY)
    other = openai.OpenAI(base_url=f"{SITE}/v1", api_key=OTHER_KEY)
    asked = {"model": "gpt-5.4-mini", "instructions": "You answer."}
    first = client.responses.create(**asked, input="responses: one?")
    after = {**asked, "previous_response_id": first.id}
    with client.responses.stream(**after, input="Two?") as stream:
        second = stream.get_final_response()
    client.responses.create(**after, input="Three?")
    for by, name in ((other, first.id), (client, "resp_guessed")):
        try:
            by.responses.create(**asked, input="?", previous_response_id=name)
            raise SystemExit("an id of another user")
        except openai.NotFoundError as error:
            expect(error.code, "previous_response_not_found")
    control("forget")
    lost = {**asked, "previous_response_id": second.id}
    try:
        client.responses.create(**lost, input="Four?")
        raise SystemExit("a lost response")
    except openai.BadRequestError as error:
        expect(error.code, "previous_response_not_found")
    said = [user("responses: one?"), *(each.to_dict() for each in first.output)]
    said += [user("Two?"), *(each.to_dict() for each in second.output), user("Four?")]
    client.responses.create(**asked, input=said)


for run in (
    *(run_thread, run_stream, run_tools, run_expired, run_forked, run_at_once),
    *(run_other_user, run_bound, run_responses),
):
    run(connect(KEY))
print("DONE", flush=True)
