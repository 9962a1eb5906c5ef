"""The text that quality is measured on: chunks of token ids from files that a Debian or Ubuntu machine with Python has.

Half prose (licence texts of base-files), half code (sources of Python's standard library), each chunk from another file.
Python's sources differ a little between versions, so figures are compared only on the same ids: a reference keeps its own.
"""

import sysconfig
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

LICENCES = Path("/usr/share/common-licenses")
LIBRARY = Path(sysconfig.get_path("stdlib"))
FILES = (
    LICENCES / "GPL-3",
    LIBRARY / "textwrap.py",
    LICENCES / "MPL-2.0",
    LIBRARY / "statistics.py",
    LICENCES / "Artistic",
    LIBRARY / "difflib.py",
    LICENCES / "Apache-2.0",
    LIBRARY / "heapq.py",
)
SKIPPED_CHARACTERS = 1000


def tokenizer_of(meta):
    """A byte-level BPE from a GGUF's vocabulary and merges, words split as GPT-2 does: plausible ids for any such model."""
    tokens = meta["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, meta["tokenizer.ggml.token_type"]) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in control])
    return tokenizer


def chunks(meta, n_ctx):
    """Eight lists of n_ctx ids."""
    tokenizer = tokenizer_of(meta)
    out = []
    for path in FILES:
        ids = tokenizer.encode(path.read_text()[SKIPPED_CHARACTERS:]).ids
        if len(ids) < n_ctx:
            raise SystemExit(f"{path} has {len(ids)} tokens, {n_ctx} are needed")
        out.append(ids[:n_ctx])
    return out
