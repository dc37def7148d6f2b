"""The first run: a scripted conversation with a small budget on the demo model, so that
a new user sees a compaction within seconds, and then a search in what is out of
view. In the language of the page. Its second act is presenters/guide.py.
"""

import uuid

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
    _("What did I say about coffee at the beginning?"),
)
TOOLS = ("search_transcript", "read_messages")
# The message of the script that its second act pins: what Mia does not eat.
TO_PIN = 5


def start(user: AbstractBaseUser) -> Conversation:
    """Queue the whole script; the runner answers it message by message."""
    conversation = transcript.create(
        user, title=gettext(TITLE), policy=dict(POLICY), model=providers.DEMO
    )
    for text in SCRIPT:
        commands.submit(conversation, text=gettext(text), client_id=uuid.uuid4().hex)
    # Only now: messages that are sent while others wait leave room for calls of tools,
    # and the numbers of a demo should have no gaps. Only its last turn needs any.
    transcript.set_tools(conversation, TOOLS)
    return conversation
