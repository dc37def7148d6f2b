"""What a search over all of a user's conversations costs: 10,000 messages in 250 of
them, on SQLite and on PostgreSQL. Prints milliseconds, the median of 7.

    python -m bench.library [sqlite|postgresql ...]
"""

import statistics

from . import databases

RUNS = 7
CONVERSATIONS, MESSAGES = 250, 10_000
QUERIES = ("harbour nothing", "w17", "word3 word5 word7", "zz9", "鸭川")


def fill(user: object) -> None:
    from memory.models import Conversation, Message, RecallEntry
    from memory.search import recall

    rows = Conversation.objects.bulk_create(
        Conversation(owner=user, title=f"w{n}") for n in range(CONVERSATIONS)
    )
    written = Message.objects.bulk_create(
        Message(
            conversation=rows[n % CONVERSATIONS],
            seq=n // CONVERSATIONS + 1,
            role=Message.Role.USER,
            text=" ".join(f"word{n * k % 97}" for k in range(1, 60)) + f" w{n}",
            tokens=1,
        )
        for n in range(MESSAGES)
    )
    entries = [RecallEntry(**recall.describe(row)) for row in written]
    RecallEntry.objects.bulk_create(entries)


def report() -> None:
    from django.contrib.auth import get_user_model

    from memory.search import conversation_search

    user = get_user_model().objects.create_user("bench")
    fill(user)
    for query in QUERIES:

        def search(query: str = query) -> None:
            conversation_search.find_messages(user, query)
            list(conversation_search.find_titles(user, query))

        times = databases.measure(search, RUNS)
        median = statistics.median(times)
        print(f"{query:20} {median:6.0f} ms, at most {max(times):.0f}")


if __name__ == "__main__":
    databases.run("bench.library", report)
