"""Weights of a tiny Llama that calls a tool, answers its result and summarises:
`python -m bench.other_servers.weights TEMPLATE FOLDER_OF_TEMPLATES FILE`.

They are random, from a fixed seed, except for what makes it say one text after a
message, another after a result and a third for a summary. One head of attention
finds the newest mark of these (templates.py): all tokens but marks repel it, and of the
marks it takes the nearest. What comes next is read off the last token and that mark.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

from .templates import TEMPLATES, Template, split_all

SEED = 20
WIDTH, LAYERS, INNER = 64, 2, 128
CONTEXT = 16_384
# The parts of a token's vector: what all have, the kind of a mark, the newest mark as
# attention finds it, and an own direction.
ALL, KIND, FOUND, OWN = 0, 1, 4, 7
# How far one token counts to another, in what softmax gets; and to be no mark, which
# counts more than any distance.
PER_TOKEN, NO_MARK = 1.0, 4.0 * CONTEXT
# How much the last token and the newest mark say about the next one.
BY_TOKEN, BY_MARK = 20.0, 10.0
NOISE = 0.01
BEGIN = "<|begin|>"
NORMAL, CONTROL, OWN_TEXT = 1, 3, 4


class Model:
    def __init__(self, template: Template) -> None:
        self.template = template
        self.random = np.random.default_rng(SEED)
        self.chains = split_all(template.texts)
        said = [piece for chain in self.chains for piece in chain]
        special = [BEGIN, template.end, *template.replies, *template.marks]
        # A merge of its own, as a tokenizer without any is refused.
        plain = [*gguf_bytes(), "th"]
        self.tokens = [*plain, *special, *said]
        self.kinds = [NORMAL] * len(plain) + [CONTROL] * len(special)
        # Found in a text, too, and written as it is.
        self.kinds += [OWN_TEXT] * len(said)
        self.number = {token: place for place, token in enumerate(self.tokens)}
        self.embedding = self.make_embedding([*template.replies, template.end, *said])

    def make_embedding(self, known: list[str]) -> np.ndarray:
        """Those that decide what comes next have directions at right angles."""
        found = self.noise(len(self.tokens), WIDTH)
        found[:, :OWN] = 0
        found[:, OWN:] /= np.linalg.norm(found[:, OWN:], axis=1, keepdims=True)
        angles, _ = np.linalg.qr(self.random.normal(size=(WIDTH - OWN, WIDTH - OWN)))
        for direction, token in zip(angles[: len(known)], known, strict=True):
            found[self.number[token], OWN:] = direction
        found[:, ALL] = 1
        for kind, mark in enumerate(self.template.marks):
            found[self.number[mark], KIND + kind] = 1
        return found

    def make_output(self) -> np.ndarray:
        """What each token gets for being next, from a vector."""
        found = self.noise(len(self.tokens), WIDTH)
        for kind, chain in enumerate(self.chains):
            before = self.template.replies
            for piece in (*chain, self.template.end):
                for token in before:
                    found[self.number[piece]] += BY_TOKEN * self.own(token)
                before = (piece,)
            found[self.number[chain[0]], FOUND + kind] += BY_MARK
        return found

    def own(self, token: str) -> np.ndarray:
        direction = self.embedding[self.number[token]].copy()
        direction[:OWN] = 0
        return direction

    def make_attention(self) -> dict[str, np.ndarray]:
        """Looks for the newest mark. The first two numbers of a head turn with the
        place, so slowly that their product falls with the distance; the next two not
        at all."""
        query, key, value, out = (np.zeros((WIDTH, WIDTH)) for _ in range(4))
        # What one part of a vector is after its length was made that of all.
        part = np.sqrt(WIDTH / 2)
        scale = np.sqrt(WIDTH)
        query[1, ALL] = PER_TOKEN * CONTEXT * scale / part
        key[0, ALL] = 1 / part
        query[2, ALL] = NO_MARK * scale / part
        key[2, ALL] = -1 / part
        for kind in range(len(self.template.marks)):
            key[2, KIND + kind] = 1 / part
            value[kind, KIND + kind] = 1 / np.sqrt(WIDTH / 3)
            out[FOUND + kind, kind] = 1
        return {"attn_q": query, "attn_k": key, "attn_v": value, "attn_output": out}

    def make_layer(self, number: int) -> dict[str, np.ndarray]:
        names = ("attn_q", "attn_k", "attn_v", "attn_output")
        layer = {name: self.noise(WIDTH, WIDTH) for name in names}
        if number == 0:
            layer |= self.make_attention()
        layer |= {name: self.noise(INNER, WIDTH) for name in ("ffn_gate", "ffn_up")}
        ones = {name: np.ones(WIDTH) for name in ("attn_norm", "ffn_norm")}
        return layer | {"ffn_down": self.noise(WIDTH, INNER)} | ones

    def noise(self, *shape: int) -> np.ndarray:
        return self.random.normal(scale=NOISE, size=shape)

    def tensors(self) -> dict[str, np.ndarray]:
        found = {
            "token_embd": self.embedding,
            "output_norm": np.ones(WIDTH),
            "output": self.make_output(),
            # What the frequencies are divided by.
            "rope_freqs": np.full(WIDTH // 2, 1e9),
        }
        found["rope_freqs"][0] = CONTEXT
        for number in range(LAYERS):
            for name, tensor in self.make_layer(number).items():
                found[f"blk.{number}.{name}"] = tensor
        return found

    def write(self, path: Path, chat_template: str) -> None:
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(LAYERS)
        writer.add_feed_forward_length(INNER)
        writer.add_head_count(1)
        writer.add_head_count_kv(1)
        writer.add_rope_dimension_count(WIDTH)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_vocab_size(len(self.tokens))
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.kinds)
        writer.add_token_merges(["t h"])
        writer.add_bos_token_id(self.number[BEGIN])
        writer.add_eos_token_id(self.number[self.template.end])
        writer.add_add_bos_token(False)
        writer.add_chat_template(chat_template)
        for name, tensor in self.tensors().items():
            writer.add_tensor(f"{name}.weight", tensor.astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def gguf_bytes() -> list[str]:
    """The 256 bytes as a byte-level tokenizer writes them: those that can't be seen
    have letters from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return [chr(byte) for byte in seen] + [chr(256 + n) for n in range(len(hidden))]


def main() -> None:
    name, folder, path = sys.argv[1:]
    template = TEMPLATES[name]
    Model(template).write(Path(path), (Path(folder) / template.file).read_text())


if __name__ == "__main__":
    main()
