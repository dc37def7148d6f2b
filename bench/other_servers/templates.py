"""What a model of each chat template says: the call of a tool in the template's own
form, an answer to its result, and a summary, all in pieces that are tokens.
"""

from dataclasses import dataclass

from . import SEARCH

QUERY = '{"query": "ferry pier captain"}'
# Different words in each, so that few pieces have to be longer to be different.
ANSWER = "Quoted above is what was said of this ferry and its captain."
SUMMARY = "They spoke about ferries, piers, minutes and captains called Nemo."
# In a summariser's request only, behind the mark of the message that it is in.
SUMMARY_MARK = '"max_tokens":'
PIECE = 5


@dataclass(frozen=True, slots=True)
class Template:
    """A template of a real model, by its file among llama.cpp's own; and of its text,
    what begins a person's message and a result, after what a reply begins, and what
    ends it.

    Where the server can't have such a conversation with anyone, `refusal` is of the
    error that it answers with, and `why` says what is behind it.
    """

    label: str
    file: str
    user: str
    result: str
    replies: tuple[str, ...]
    end: str
    call: str
    refusal: str = ""
    why: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """The newest of these decides what is said: a call, an answer or a summary."""
        return self.user, self.result, SUMMARY_MARK

    @property
    def texts(self) -> tuple[str, ...]:
        """What is said after each of the marks."""
        return self.call, ANSWER, SUMMARY


TEMPLATES = {
    "hermes": Template(
        label="Hermes 3",
        file="NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja",
        user="<|im_start|>user\n",
        result="<|im_start|>tool\n",
        replies=("<|im_start|>assistant\n",),
        end="<|im_end|>",
        call=(
            f'<tool_call>\n{{"name": "{SEARCH}", "arguments": {QUERY}}}\n</tool_call>'
        ),
    ),
    "llama": Template(
        label="Llama 3.1",
        file="meta-llama-Llama-3.1-8B-Instruct.jinja",
        user="<|start_header_id|>user<|end_header_id|>\n\n",
        result="<|start_header_id|>ipython<|end_header_id|>\n\n",
        replies=("<|start_header_id|>assistant<|end_header_id|>\n\n",),
        end="<|eot_id|>",
        call=f'{{"name": "{SEARCH}", "parameters": {QUERY}}}',
    ),
    "mistral": Template(
        label="Mistral Nemo",
        file="mistralai-Mistral-Nemo-Instruct-2407.jinja",
        user="[INST]",
        result="[TOOL_RESULTS]",
        replies=("[/INST]", "[/TOOL_RESULTS]"),
        end="</s>",
        call=(
            f'[TOOL_CALLS][{{"name": "{SEARCH}", "arguments": {QUERY}, '
            '"id": "a1b2c3d4e"}]'
        ),
        refusal="Tool call IDs should be alphanumeric strings with length 9",
        why=(
            "while it streams, the server gives a call an id of 32 characters in place "
            "of the model's own, and the template refuses it when it comes back"
        ),
    ),
}


def split_all(texts: tuple[str, ...]) -> list[list[str]]:
    """The texts in pieces of which no two are the same: each is a token of its own, by
    which a model knows where it is."""
    taken: set[str] = set()
    return [split(text, taken) for text in texts]


def split(text: str, taken: set[str]) -> list[str]:
    """Pieces of at least PIECE characters, the last one included; they are taken."""
    pieces = []
    while text:
        size = PIECE
        while text[:size] in taken and size < len(text):
            size += 1
        size = len(text) if len(text) - size < PIECE else size
        if text[:size] in taken:
            raise ValueError(f"{text!r} has no piece that is not taken")
        pieces.append(text[:size])
        taken.add(text[:size])
        text = text[size:]
    return pieces
