"""The first run: a scripted conversation with a small budget on the demo model, so that
somebody who has just signed up sees a fold within seconds.
"""

import uuid
from typing import TYPE_CHECKING

from chatsite.llm import providers
from memory import transcript
from memory.models import Conversation

from . import turns

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

TITLE = "Show me the split"
POLICY = {
    "preset": "layered",
    "trigger": ["tokens", 240],
    "keep": ["tokens", 90],
    "max_summary_tokens": 120,
    "summary_budget": 300,
}
SCRIPT = (
    "Hi! I'm Lance, and I am planning a trip to Kyoto.",
    "We are 4 people and the budget is 3,200 euros.",
    "We fly on 12 April and come back on 21 April.",
    "What's my name, and where am I going?",
    "I like the 49ers, temples and good coffee.",
    "My sister Mia is a vegetarian; please remember that.",
    "我们想住在鸭川附近，每晚最多 180 欧元。",
    "The train from Osaka takes about 75 minutes.",
    "Who is coming with me, and what does she not eat?",
    "We want to see the Fushimi Inari shrine on 14 April.",
    "What is our budget?",
    "我们想住在哪里？",
)


def start(user: "AbstractBaseUser") -> Conversation:
    """Queue the whole script; the runner answers it message by message."""
    conversation = transcript.create(
        user, title=TITLE, policy=dict(POLICY), model=providers.DEMO
    )
    for text in SCRIPT:
        turns.submit(conversation, text=text, client_id=uuid.uuid4().hex)
    return conversation
