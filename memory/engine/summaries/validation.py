"""The rules for a valid summary: a complete reply with words, and not a refusal."""

import re

from langchain_core.messages import AIMessage, HumanMessage

from .. import replies
from ..blank import is_blank
from ..exceptions import (
    EmptySummary,
    ErrorSummary,
    OverlongSummary,
    RefusedSummary,
    TruncatedSummary,
)
from ..policy import Policy
from ..tokens import TokenCounter, count_tokens
from ..wording import gettext_noop as _

# A refusal is a short reply that begins like one; a summary may well quote one later.
REFUSAL_MAX_CHARS = 400
REFUSAL = re.compile(
    r"(i['’]m sorry|sorry|i apologi[sz]e|unfortunately)?[,.]?\s*(but\s+)?"
    r"(as an ai\b|i\s*(['’]m|am)?\s*(can['’]?t|can ?not|unable to|not able to|won['’]t)"
    r"\s+(help|assist|summari[sz]e|comply|do|provide|process|fulfill?|continue))"
    r"|(很?抱歉|对不起)?[,，。]?\s*我(不能|无法|没法)(帮|协助|总结|提供|处理|满足|完成)",
    re.IGNORECASE,
)


def validate_summary(
    reply: AIMessage,
    *,
    input_tokens: int,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    text: str | None = None,
) -> str:
    """Return the text of a reply that may become memory; raise SummaryError otherwise.

    `text` is the text to be stored if it is not the reply itself.
    """
    text = replies.strip_reasoning(str(reply.text)) if text is None else text
    if replies.why_metadata_cut_off(reply.response_metadata):
        raise TruncatedSummary(_("The summary was cut off by the provider."))
    is_refusal = len(text) <= REFUSAL_MAX_CHARS and REFUSAL.match(text)
    if reply.additional_kwargs.get("refusal") or is_refusal:
        raise RefusedSummary(_("The model declined to summarise."))
    if is_blank(text):
        raise EmptySummary(_("The summary is empty."))
    if replies.is_error_report(text):
        raise ErrorSummary(_("The model answered with an error, not with a summary."))
    tokens = count_tokens([HumanMessage(text)])
    if tokens > max(policy.max_summary_tokens, input_tokens):
        raise OverlongSummary(
            _(
                "The summary has %(tokens)s tokens: more than its cap of %(cap)s and "
                "than its input of %(input)s."
            ),
            tokens=tokens,
            cap=policy.max_summary_tokens,
            input=input_tokens,
        )
    return text
