"""Models that say a fixed chain of tokens, whatever they are asked: what an answer's text, its tokens' borders and its control tokens are is
known exactly. One layer whose weights are zero lets the token's own row through, and the output matrix names the next one."""
import os
import struct

from command import SCRATCH, string

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{{ '' }}{% endif %}")
HEAD = 32


def alphabet():
    """GPT-2's characters for bytes."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


ALPHABET = alphabet()


def spelled(text):
    return "".join(ALPHABET[b] for b in (text if isinstance(text, bytes) else text.encode()))


def u32(value):
    return 4, struct.pack("<I", value)


def f32(value):
    return 6, struct.pack("<f", value)


def text_of(value):
    return 8, string(value)


def array(kind, items):
    return 9, struct.pack("<IQ", kind, len(items)) + b"".join(items)


def vocabulary(script):
    """Tokens, their types, and the ids that are said. A script's piece is text (a normal token), or a pair of CONTROL or USER_DEFINED and text."""
    tokens = [(ALPHABET[b], NORMAL) for b in range(256)] + [(ALPHABET[0] + ALPHABET[1], NORMAL), ("<|im_end|>", CONTROL), ("<|im_start|>", CONTROL)]
    said = []
    for piece in script:
        token = (piece[1], piece[0]) if isinstance(piece, tuple) else (spelled(piece), NORMAL)
        if token not in tokens:
            tokens.append(token)
        assert tokens.index(token) not in said, f"{piece!r} is said twice"
        said.append(tokens.index(token))
    return tokens, said


def matrix(rows, columns, ones):
    """With values at (row, column), else zero."""
    data = bytearray(4 * rows * columns)
    for (row, column), value in ones.items():
        struct.pack_into("<f", data, 4 * (row * columns + column), value)
    return (columns, rows), bytes(data)


def ones(n):
    return (n,), struct.pack("<f", 1) * n


def make(name, script, template=CHATML, wild=()):
    """The path of a model that says the script's pieces and ends. Behind a token of `wild` its logits are not finite."""
    tokens, said = vocabulary(script)
    eos, n = 257, len(tokens)
    width = (n + 31) // 32 * 32
    after = {t: said[0] if said else eos for t in range(n)}
    after.update(zip(said, [*said[1:], eos]))
    by_text = {token[0]: i for i, token in enumerate(tokens)}
    strength = {t: 3 for t in range(n)} | {by_text[spelled(piece)]: 3e38 for piece in wild}
    keys = {
        "general.architecture": text_of("llama"), "general.name": text_of("scripted"), "llama.context_length": u32(4096), "llama.embedding_length": u32(width),
        "llama.block_count": u32(1), "llama.feed_forward_length": u32(32), "llama.attention.head_count": u32(2), "llama.attention.head_count_kv": u32(1),
        "llama.attention.key_length": u32(HEAD), "llama.attention.value_length": u32(HEAD), "llama.rope.dimension_count": u32(HEAD),
        "llama.attention.layer_norm_rms_epsilon": f32(1e-6), "llama.rope.freq_base": f32(10000), "tokenizer.ggml.model": text_of("gpt2"),
        "tokenizer.ggml.pre": text_of("gpt-2"), "tokenizer.ggml.tokens": array(8, [string(t) for t, _ in tokens]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for _, kind in tokens]),
        "tokenizer.ggml.merges": array(8, [string(f"{ALPHABET[0]} {ALPHABET[1]}")]), "tokenizer.ggml.eos_token_id": u32(eos),
        "tokenizer.chat_template": text_of(template),
    }
    tensors = {
        "token_embd.weight": matrix(n, width, {(t, t): 1 for t in range(n)}), "output_norm.weight": ones(width),
        "output.weight": matrix(n, width, {(after[t], t): strength[t] for t in range(n)}), "blk.0.attn_norm.weight": ones(width), "blk.0.ffn_norm.weight": ones(width),
        "blk.0.attn_q.weight": matrix(2 * HEAD, width, {}), "blk.0.attn_k.weight": matrix(HEAD, width, {}), "blk.0.attn_v.weight": matrix(HEAD, width, {}),
        "blk.0.attn_output.weight": matrix(width, 2 * HEAD, {}), "blk.0.ffn_gate.weight": matrix(32, width, {}), "blk.0.ffn_up.weight": matrix(32, width, {}),
        "blk.0.ffn_down.weight": matrix(width, 32, {}),
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(string(key) + struct.pack("<I", kind) + value for key, (kind, value) in keys.items())
    data = b""
    for tensor, (shape, values) in tensors.items():
        head += string(tensor) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in shape) + struct.pack("<IQ", 0, len(data))
        data += values + b"\0" * (-len(values) % 32)
    path = os.path.join(SCRATCH, f"{name}.gguf")
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)
    return path
