"""Limits of a policy, capped by the tokens that a request has.

A model with a small window cannot hold what the presets keep. Without a cap the oldest
messages of the window would be left out long before a summary covers them.
"""

from .policy import Policy

# The shares of a request for all summaries, for one of them, and for recalled notes.
SUMMARIES_SHARE = 3
SUMMARY_SHARE = 6
RECALLED_SHARE = 8
# And for the passages of long files, where a conversation has any.
FILES_SHARE = 4
# Percent of a request; an unknown limit counts as a hundred thousand tokens.
RULES_PERCENT = 3
RULES_MOST = 3000
# Kept free for the next message, which is not known when the window is compacted.
NEXT_SHARE = 20
NEXT_MOST = 1000


def cap_policy(policy: Policy, limit: int) -> Policy:
    """Return the policy with values that fit into `limit` tokens.

    The system prompt comes on top.
    """
    budget = max(1, limit // SUMMARIES_SHARE)
    values = {
        "summary_budget": min(policy.summary_budget, budget),
        "max_summary_tokens": min(
            policy.max_summary_tokens, max(1, limit // SUMMARY_SHARE)
        ),
        "recall_tokens": min(policy.recall_tokens, max(0, limit // RECALLED_SHARE)),
        # Where few summaries fit, more of them would overflow before a merge is due.
        "fan_in": policy.fan_in if policy.summary_budget <= budget else 2,
    }
    return policy.model_copy(update=values)


def most_summaries(limit: int) -> int:
    """Return the tokens of summaries above which all of them are merged."""
    return max(1, limit // SUMMARIES_SHARE * 3 // 2)


def for_rules(limit: int | None) -> int:
    """Return the tokens for rules in a request of `limit`; None: unknown."""
    return limit * RULES_PERCENT // 100 if limit else RULES_MOST


def for_files(most: int, limit: int | None) -> int:
    """Return the tokens for passages of long files in a request of `limit`.

    Never more than `most`; a `limit` of None is unknown.
    """
    return min(most, limit // FILES_SHARE) if limit else most


def for_window(policy: Policy, limit: int, around: int, *, is_waiting: bool) -> int:
    """Return the tokens for the window in a request of `limit`.

    `around` of them are taken. `is_waiting`: the next message is known and counted
    there.
    """
    free = 0 if is_waiting else min(limit // NEXT_SHARE, NEXT_MOST)
    return max(0, limit - around - policy.recall_tokens - free)
