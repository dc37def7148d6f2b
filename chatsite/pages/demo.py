"""The first run: a scripted conversation with a small budget on the demo model.

A new user sees a compaction within seconds. It is in the language of the page, which
sends its messages one by one (static/js/demo.js). Its second act is
presenters/guide.py. The model has no tools, and nothing is searched: it knows what
the summaries and the last messages say.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from chatsite.llm import providers
from chatsite.turns import commands
from memory import transcript
from memory.models import Conversation

TITLE = _("Demo conversation")
POLICY = {
    "preset": "layered",
    "trigger": ["tokens", 240],
    "keep": ["tokens", 90],
    "max_summary_tokens": 120,
    "summary_budget": 300,
    "recall_tokens": 0,
}
SCRIPT = (
    _("Hi! I'm Lance, and I am planning a trip to Kyoto."),
    _("We are 4 people and the budget is 3,200 euros."),
    _("We fly on 12 April and come back on 21 April."),
    _("What's my name, and where am I going?"),
    _("I like the 49ers, temples and good coffee."),
    _("My sister Mia is a vegetarian; please remember that."),
    _("We would like to stay near the Kamo river, for at most 180 euros a night."),
    _("The train from Osaka takes about 75 minutes."),
    _("Who is coming with me, and what does she not eat?"),
    _("We want to see the Fushimi Inari shrine on 14 April."),
    _("What is our budget?"),
    _("Near which river would we like to stay?"),
)
QUESTION = _("Where am I going?")


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A message that the page is to send, and the id that lets it be sent once."""

    client_id: str
    text: str


def start_demo(user: AbstractBaseUser) -> Conversation:
    """Create the conversation with its first message.

    Its page sends the others, each when the reply before it has ended.
    """
    conversation = transcript.create_conversation(
        user, title=gettext(TITLE), policy=dict(POLICY), model=providers.DEMO
    )
    for first in find_lines(conversation)[:1]:
        commands.submit_message(
            conversation, text=first.text, client_id=first.client_id
        )
    return conversation


def find_lines(conversation: Conversation) -> list[ScriptLine]:
    """Return the lines of the script that were not sent yet, in the page's language."""
    lines = [ScriptLine(f"demo-{n}", gettext(text)) for n, text in enumerate(SCRIPT)]
    ids = [line.client_id for line in lines]
    sent = conversation.messages.filter(client_id__in=ids)
    known = set(sent.values_list("client_id", flat=True))
    return [line for line in lines if line.client_id not in known]
