"""The command that puts a finished conversation in two languages into the database.

It is there to look at and to test against. The demo model wrote its replies and
summaries; nothing is made up.
"""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction
from langchain_core.messages import AIMessage, BaseMessage

from chatsite.llm import providers
from chatsite.llm.demo.chat_model import DemoChatModel
from chatsite.turns import commands, lifecycle, requests
from chatsite.turns.models import Turn
from memory import context, transcript
from memory.compaction import compactor
from memory.models import Conversation

NAME = "demo"
TITLE = "Spring in Kyoto · 京都之春"
POLICY = {"preset": "langgraph", "trigger": ["messages", 10]}
SCRIPT = (
    "Hi! I'm Lance, and I am planning a trip to Kyoto.",
    "We are 4 people, and the budget is 3,200 euros in all.",
    "We fly on 12 April and come back on 21 April.",
    "我妹妹叫小敏，她吃素，请记住。",
    "What's my name, and where am I going?",
    "我们想住在鸭川附近，每晚最多 180 欧元。",
    "The train from Osaka takes about 75 minutes and leaves every half hour.",
    "I like the 49ers, temples and good coffee.",
    "我妹妹叫什么名字？",
    "We want to see the Fushimi Inari shrine early on 14 April.",
    "On 16 April we go to Nara for a day; the deer park is a must.",
    "What is our budget?",
    "酒店我们选了三条的「河原町旅馆」，一共九晚。",
    "Please keep the evening of 20 April free for a farewell dinner.",
    "我们想住在哪里？",
)
# Messages after which a compaction is tried, and how: at 18 the summariser does not
# answer, at 20 it is asked again without waiting for the back-off to pass.
FAILS_AT, ASKED_AGAIN_AT = 18, 20


class Command(BaseCommand):
    help = f"Makes the user {NAME} (password {NAME}) with a finished conversation."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("create_user", NAME, NAME, if_missing=True, stdout=self.stdout)
        user = get_user_model().objects.get(username=NAME)
        seeded = Conversation.objects.filter(owner=user, title=TITLE).first()
        if seeded and seeded.messages.count() >= 2 * len(SCRIPT):
            self.stdout.write("The conversation is there already.")
            return
        if seeded:
            # An earlier run was ended half way.
            seeded.delete()
        conversation = transcript.create_conversation(
            user, title=TITLE, policy=dict(POLICY), model=providers.DEMO
        )
        for number, text in enumerate(SCRIPT, start=1):
            _play_turn(conversation, text, client_id=f"seed-{number}")
            _compact_seeded(conversation, said=2 * number)
        self.stdout.write(self.style.SUCCESS(f"Seeded {TITLE!r}."))


def _play_turn(conversation: Conversation, text: str, *, client_id: str) -> None:
    """One turn, from the message to the reply that the demo model gives to it."""
    # In one transaction, or a server beside this command would take the queued turn.
    with transaction.atomic():
        submitted = commands.submit_message(
            conversation, text=text, client_id=client_id
        )
        claim = lifecycle.claim(conversation.pk)
    built = context.build_request_context(
        conversation,
        newest=submitted.message,
        model=providers.DEMO,
        limit=requests.limit_of(providers.DEMO),
    )
    claim = lifecycle.begin(claim, built, providers.DEMO)
    reply = async_to_sync(_invoke_demo)(built.context.messages)
    usage = reply.usage_metadata or {}
    lifecycle.finish(
        claim,
        lifecycle.TurnResult(
            Turn.State.DONE,
            str(reply.text),
            tokens_input=usage.get("input_tokens"),
            tokens_output=usage.get("output_tokens"),
        ),
    )


def _compact_seeded(conversation: Conversation, *, said: int) -> None:
    invoke = _time_out if said == FAILS_AT else _invoke_demo
    async_to_sync(compactor.compact_conversation)(
        conversation.pk,
        compactor.Summariser(providers.DEMO, invoke),
        open_from=lifecycle.open_from,
        force=said == ASKED_AGAIN_AT,
    )


async def _invoke_demo(messages: list[BaseMessage], **options: Any) -> AIMessage:
    return await DemoChatModel(tokens_per_second=0).ainvoke(messages)


async def _time_out(messages: list[BaseMessage], **options: Any) -> AIMessage:
    raise compactor.InvokeError("timeout")
