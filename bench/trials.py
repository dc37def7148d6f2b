"""Trials: of each request of the demo and of a long conversation with summaries, pins,
notes and tools an unedited one, whose hash has to be the stored one; then 1,000 that
differ, which may change no row but their own and those of what was sent.
"""

import hashlib
import itertools
import time

from asgiref.sync import async_to_sync

from . import databases

TURNS, TRIALS, CALLED_EVERY, PINNED_EVERY = 300, 1_000, 10, 25
POLICY = {"preset": "layered", "trigger": ["tokens", 600], "keep": ["tokens", 200]}
OWN = {"Trial", "ModelCall", "Prompt", "Prompt_conversations", "Allowance"}


def report() -> None:
    from django.conf import settings
    from django.core.management import call_command

    from memory.models import Conversation
    from tests.fakes.upstream import Upstream

    settings.DEMO_TOKENS_PER_SECOND, settings.MESSAGES_PER_MINUTE = 0, 0
    call_command("seed_demo", verbosity=0)
    with Upstream() as provider:
        settings.OPENAI_BASE_URL, settings.CHAT_MODEL = provider.url, "ok"
        conversation = talk()
        for row in Conversation.objects.order_by("pk"):
            print(describe_equal(row))
        before = hash_tables()
        started = time.monotonic()
        states, is_sent = vary(conversation, provider)
        each = (time.monotonic() - started) * 1_000 / TRIALS
        is_same = hash_tables() == before
        print(f"{TRIALS} trials: {states}, {each:.0f} ms each")
        print(f"other rows unchanged: {is_same}; as the provider got them: {is_sent}")


def talk() -> object:
    """A conversation of so many turns, as a server process would have it."""
    from django.contrib.auth import get_user_model

    from chatsite.turns import commands, runner
    from memory import actions, transcript
    from memory.compaction import compactor

    owner = get_user_model().objects.create_user("tried")
    tools = ["calculate"]
    values = {"policy": POLICY, "model": "demo", "tools": tools}
    made = transcript.create_conversation(owner, **values)
    for n in range(TURNS):
        text = f"Order A-{n} of Berlin costs {n}50 euros. And order A-{n // 2}?"
        if n % CALLED_EVERY == 0:
            text = 'use calculate {"expression": "1+1"}'
        commands.submit_message(made, text=text, client_id=f"t{n}")
        async_to_sync(runner._drive_turns)(made.pk)
        if n % PINNED_EVERY == 1:
            actions.pin_message(made, made.messages.filter(role="user").last().seq)
        async_to_sync(compactor.compact_conversation)(
            made.pk,
            runner.make_summariser("demo", payer=owner.pk),
            context_window=32_000,
        )
        made.refresh_from_db()
    return made


def describe_equal(conversation: object) -> str:
    from chatsite.turns.requests import reply_call
    from memory.view.variation import Variation

    equal, kinds = 0, set()
    replies = list(conversation.messages.filter(role="assistant").order_by("seq"))
    for message in replies:
        call = reply_call(conversation, message.seq)
        trial = try_again(conversation, message.seq, Variation())
        equal += trial.call.sha256 == call.sha256
        kinds |= {name for name, value in call.refs.items() if value}
    return f"{equal} of {len(replies)} unedited trials equal; of {sorted(kinds)}"


def vary(conversation: object, provider: object) -> tuple[dict[str, int], bool]:
    from chatsite.contrib.lab.trials import services
    from memory.engine.compose import digest_wire
    from memory.view.variation import Variation

    seq = conversation.messages.filter(role="assistant").last().seq
    newest = services.find_request(conversation, seq).refs["newest"]
    kinds = itertools.cycle(
        [
            {"edited": newest, "text": "In other words"},
            {"brought_back": 1},
            {"without_recall": True, "without_summaries": True},
            {"preset": "guide"},
            {"temperature": 0.5},
        ]
    )
    states: dict[str, int] = {}
    is_sent = True
    for changes in itertools.islice(kinds, TRIALS):
        trial = try_again(conversation, seq, Variation("ok", **changes))
        states[trial.state] = states.get(trial.state, 0) + 1
        is_sent &= digest_wire(provider.calls[-1].messages) == trial.call.sha256
        provider.requests.clear()
    return states, is_sent


def try_again(conversation: object, seq: int, variation: object) -> object:
    from chatsite.contrib.lab.trials import job, services, store
    from chatsite.contrib.lab.trials.models import Trial

    trial = services.start_trial(conversation, seq, variation)
    claim = store.claim_trial()
    async_to_sync(job.run_trial)(claim)
    return Trial.objects.select_related("call").get(pk=trial.pk)


def hash_tables() -> str:
    from django.apps import apps
    from django.db.models import QuerySet

    rows = [
        repr(list(QuerySet(model).order_by("pk").values_list()))
        for model in apps.get_models(include_auto_created=True)
        if model.__name__ not in OWN
    ]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


if __name__ == "__main__":
    databases.run("bench.trials", report)
