"""Token ids of the published tokenizers for a hard corpus: tests/fixtures/token_corpus.json and tokens_NAME.json.

A tokenizer is built from a GGUF file's vocabulary, merges and scores with the published settings: Hugging Face's `tokenizers`
for byte-level BPE, Google's `sentencepiece` for SentencePiece. Needs numpy, gguf, tokenizers, sentencepiece, protobuf.

    token_ids.py FOLDER            writes the fixtures for the models in FOLDER
    token_ids.py --print FILE [PRE]   prints each text's ids (control tokens parsed, then not), to compare any vocabulary file,
                                   with another pre-tokenizer than the file's
"""
import functools
import json
import os
import random
import re
import sys

import gguf
import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
MODELS = {
    "smollm2": "smollm2-135m-instruct-q4_1.gguf",
    "qwen2.5-coder": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "gemma3": "gemma-3-270m-q4_k_m.gguf",
}

LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SYMBOL_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def split(regex):
    return pre_tokenizers.Split(Regex(regex), "isolated")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def one(regex):
    return lambda: [split(regex), byte_level(False)]


def digits_gpt2():
    return [pre_tokenizers.Digits(individual_digits=True), byte_level(True)]


# name: (pre-tokenizers in order, NFC, ignore_merges), as the published tokenizer.json has them
PUBLISHED = {
    "gpt-2": (lambda: [byte_level(True)], False, False),
    "mpt": (lambda: [byte_level(True)], True, False),
    "smollm": (digits_gpt2, False, False),
    "starcoder": (digits_gpt2, False, False),
    "refact": (digits_gpt2, False, False),
    "command-r": (digits_gpt2, True, False),
    "falcon": (
        lambda: [
            pre_tokenizers.Punctuation("contiguous"),
            byte_level(True),
            pre_tokenizers.Digits(individual_digits=False),
            split("[0-9][0-9][0-9]"),
        ],
        False,
        False,
    ),
    "qwen2": (one(CONTRACTION + "|" + LETTERS + r"|\p{N}|" + TAIL), True, False),
    "qwen35": (
        one(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        True,
        False,
    ),
    "llama-bpe": (one(CONTRACTION + "|" + LETTERS + r"|\p{N}{1,3}|" + TAIL), False, True),
    "deepseek-coder": (
        lambda: [
            split("[\r\n]"),
            split(r"\s?\p{L}+"),
            split(r"\s?\p{P}+"),
            split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
            pre_tokenizers.Digits(individual_digits=True),
            byte_level(False),
        ],
        False,
        False,
    ),
    "deepseek-v3": (
        lambda: [
            split(r"\p{N}{1,3}"),
            split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
            split(
                r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            byte_level(False),
        ],
        False,
        False,
    ),
    "gpt-4o": (
        one(
            r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
            + "*" + CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        False,
        False,
    ),
    "tekken": (
        one(
            r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
            + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        False,
        True,
    ),
    "bailingmoe": (
        one(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        False,
        False,
    ),
    "exaone-moe": (
        one(
            CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
            r"|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        False,
        False,
    ),
    "bloom": (
        lambda: [split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), byte_level(False)], False, False),
    "kimi-k2": (
        one(
            r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
            + CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        False,
        False,
    ),
    "jais-2": (
        one(
            CONTRACTION + "|" + LETTERS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
            + "|".join(r"\s{%d}(?!\S)" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"
        ),
        False,
        False,
    ),
    "superbpe": (lambda: [split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), byte_level(False)], False, False),
    "tiny_aya": (
        lambda: [
            split(r"\d{1,3}(?=(?:\d{3})*\b)"),
            split(
                r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
                + "*" + CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            byte_level(False),
        ],
        False,
        False,
    ),
    "afmoe": (
        lambda: [
            split(r"\p{N}+"),
            split(r"(?=(?:\p{N}{3})+$)"),
            split("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff"
                  "\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"),
            split(SYMBOL_WORD + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
            byte_level(False),
        ],
        False,
        False,
    ),
    "youtu": (
        lambda: [
            split("[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
                  "|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
            split(
                r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
                + "*" + CONTRACTION + r"?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            byte_level(False),
        ],
        False,
        True,
    ),
    "spark2_5": (
        lambda: [
            split(r"\p{N}{1,3}"),
            split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
            split(SYMBOL_WORD + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"),
            split(r"\p{N}"),
            byte_level(False),
        ],
        False,
        False,
    ),
    "seed-coder": (
        one(CONTRACTION + "|" + LETTERS + r"|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"), False, False),
    "minicpm5": (
        lambda: [split(r"\p{N}{1,3}"), split(CONTRACTION + "|" + LETTERS + r"|\p{N}+|" + TAIL), byte_level(False)], False, True),
    "laguna": (
        lambda: [split(r"[^\n]+|[\n]+"), split(CONTRACTION + "|" + LETTERS + r"|\p{N}|" + TAIL), byte_level(False)], False, False),
    "chameleon": (
        lambda: [
            split("<sentinel:[0-9]+>"), split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"), split(r"([\t\n]|    |  )"),
            split(r"\p{N}"), split(r"[\p{P}!-/:-@\[-`{-~]"), byte_level(True),
        ],
        False,
        False,
    ),
    "viking": (
        lambda: [
            split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), split(r"\p{N}"), byte_level(False)], False, False),
    # llama.cpp's own: no published tokenizer has it
    "default": (
        lambda: [
            split(r"[\p{P}$+<=>^~|]+"), split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
            split(r"\p{N}+"), split("[0-9][0-9][0-9]"), byte_level(False)], False, False),
}


def corpus():
    texts = [
        "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", " \r\n \n\r", "\t\t \t", " " * 17, " " * 64 + "x",
        "\n" * 33, "\t" * 9 + "\n", "a\n", "a \n", "a  \n  b", "\u00a0x\u00a0", "\u3000\u3000字", "\u2028\u2029", "\x85x", "\u180e", "a\u180eb \u180e c",
        "Hello, world!", "Hello  world", " Hello", "Hello ", "It's I'M you'RE we'll they'D I've can't 'tis o'clock it\u2019s it'\u017f 'LL",
        "0", "1 12 123 1234 12345 123456 1234567 12345678 3.14159 1,000,000 2^64 0x7FFF 1e-9 ½ ² Ⅷ ٣٤٥ १२३४ 123abc abc123 1a2b 1234_5",
        "price: $12.50 (−3 %) €9, £8; ¥7!", "a.b.c...d....e!!!??? --- *** === ##### ~~~ <<>> [[]] {{}} ((()))",
        "def f(x):\n    return x**2  # square\n\n\nclass A:\n\tpass\n", "int main(void) {\r\n\tprintf(\"%d\\n\", 42);\r\n\treturn 0;\r\n}\r\n",
        "SELECT * FROM t WHERE a='b' AND c<>1;", "<html><body class=\"x\">&nbsp;</body></html>", "https://example.com/a/b?c=d&e=f#g user@host.tld",
        "CamelCaseWordsHTTPServerXMLParser snake_case_words kebab-case-words SCREAMING_CASE iOS macOS eBay McDonald",
        "Größe naïve façade Ærøskøbing Łódź Çeşme Ñandú", "Привет, мир! Ёжик ЩУКА", "Γειά σου Κόσμε ΑΒΓ", "שָׁלוֹם עולם", "مرحبا بالعالم، كيف الحال؟",
        "नमस्ते दुनिया क्षत्रिय", "বাংলা ভাষা", "தமிழ் மொழி", "ภาษาไทยไม่มีเว้นวรรค", "ជំរាបសួរ", "မြန်မာဘာသာ", "ქართული ენა", "አማርኛ", "Հայերեն",
        "你好，世界！今天天气不错。", "日本語のテキスト、カタカナとひらがな。ﾊﾝｶｸ", "안녕하세요 세계! 한국어 ㄱㄴㄷ", "繁體中文 ㄅㄆㄇ 一二三", "𠮷野家 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐷",
        "👍 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ☺️ ☺ 1️⃣ 🧑🏿‍🚀🤷🏻‍♀️", "e\u0301 e\u0327\u0301 e\u0301\u0327 A\u030a \u212b \u2126 q\u0307\u0323 q\u0323\u0307 \u1100\u1161\u11a8 \uac00\u11a8 o\u0302\u0323",
        "Z\u0351\u036b\u0343a\u0331\u033dl\u0308\u0325g\u0348\u0320o\u0329", "ﬁ ﬂ ﬆ ｆｕｌｌｗｉｄｔｈ １２３ ™ ℡", "\u200b\u200c\u200d\ufeffx\u00ad", "\x00\x01\x02\x03\x05\x07\x08\x0b\x0c\x1b[0m\x7f",
        "\x04\x06\x13a\x14b", "\U0010ffff \ue000 \ufffd \ufffe", "▁a ▁▁b Ġc Ċ õ ÿ", "<0x0A> <0xFF> <unk>", "a" * 1000, "ab" * 700, "9" * 100, "!" * 100, "你" * 200, "=" * 64 + "\n" + "-" * 64,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "x<|endoftext|>y <|endoftext|> z", "<|im_start|", "<|im_start|><|im_start|>", "<<|im_end|>>",
        "<s>a</s> <bos><eos><pad>", "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<tool_call>{\"a\": 1}</tool_call>", "<think>\n\n</think>\n\n",
        "<table><tr><td>1</td></tr></table>", "<unused0><unused99> [multimodal] [toxicity=0]", "<repo_name>a<file_sep>b<jupyter_start>", "<|begin_of_text|><|eot_id|><|reserved_special_token_0|>",
        "<|user|>\nhi<|end|>\n<|assistant|>\n", "e\u0301<|im_end|>\u0301e", "\u0301\u0327<|endoftext|>\u0327",
    ]
    rng = random.Random(20240501)
    pools = ["abcdefghij", "ABCDE", "  \n\t\r", "0123456789", ".,;:!?'\"()[]{}<>|/\\-_=+*&^%$#@~`", "éüñçß", "абвгд", "你好世界", "あアー", "가나다", "ाि्क", "\u0301\u0327\u0323",
             "🙂👍\u200d\ufe0f", "\u00a0\u2003\u3000\u180e\u200b", "½²Ⅷ٣", "sStTmMdDllreve''"]
    for _ in range(150):
        parts = [rng.choice(rng.choice(pools)) * rng.choice([1, 1, 1, 1, 2, 3, 5]) for _ in range(rng.randint(1, 60))]
        texts.append("".join(parts))
    return texts


@functools.lru_cache(maxsize=1)
def read(path):
    fields = gguf.GGUFReader(path).fields

    @functools.cache
    def get(key, default=None):
        return fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else default

    return get


def bpe(get, parse_control, pre=None):
    tokens, types = get("tokens"), get("token_type")
    stages, nfc, ignore_merges = PUBLISHED[pre or get("pre")]
    vocab = {text: i for i, (text, kind) in enumerate(zip(tokens, types)) if kind == 1}
    merges = [tuple(m.split(" ", 1)) for m in get("merges")]
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
    if nfc:
        tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(stages())
    # `tokenizers` gives added tokens the next free ids, so its ids go through the text they stand for.
    for i, (text, kind) in enumerate(zip(tokens, types)):
        if kind == 4 or (kind == 3 and parse_control):
            tok.add_tokens([AddedToken(text, normalized=False, special=kind == 3)])
    ids = {text: i for i, text in enumerate(tokens)}
    return lambda text: [ids[token] for token in tok.encode(text, add_special_tokens=False).tokens]


def spm(get, parse_control, _pre=None):
    tokens, types, scores = get("tokens"), get("token_type"), get("scores")
    model = proto.ModelProto()
    prefix = get("add_space_prefix", True)
    model.trainer_spec.model_type = 2
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id = types.index(2) if 2 in types else get("unknown_token_id")
    model.trainer_spec.bos_id, model.trainer_spec.eos_id = get("bos_token_id"), get("eos_token_id")
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = prefix
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    for i, (text, kind, score) in enumerate(zip(tokens, types, scores)):
        piece = model.pieces.add()
        piece.piece = text.replace(" ", "▁") if kind == 4 else text
        piece.score = score
        piece.type = 2 if i == model.trainer_spec.unk_id else 3 if kind == 2 else kind
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    control = sorted((t for t, kind in zip(tokens, types) if kind in (2, 3)), key=len, reverse=True)
    special = re.compile("(" + "|".join(map(re.escape, control)) + ")") if parse_control else None
    ids = {text: i for i, text in enumerate(tokens)}

    def encode(text):
        out = []
        for part in special.split(text) if special else [text]:
            if special and special.fullmatch(part):
                out.append(ids[part])
            elif part:
                out += sp.encode(part)
        return out

    return encode


def encoders(path, pre=None):
    get = read(path)
    build = bpe if get("model") == "gpt2" else spm
    return build(get, True, pre), build(get, False, pre)


def write(name, value):
    with open(os.path.join(FIXTURES, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "--print":
        parsed, plain = encoders(*sys.argv[2:4])
        for text in corpus():
            for encode in (parsed, plain):
                print(*encode(text))
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    made_by = {
        "script": "tests/oracle/token_ids.py",
        "tokenizers": tokenizers.__version__,
        "sentencepiece": sentencepiece.__version__,
        "gguf": getattr(gguf, "__version__", "") or __import__("importlib.metadata").metadata.version("gguf"),
    }
    write("token_corpus.json", {"made_by": made_by, "texts": corpus()})
    for name, file in MODELS.items():
        parsed, plain = encoders(os.path.join(sys.argv[1], file))
        texts = corpus()
        write(f"tokens_{name}.json", {"made_by": made_by, "file": file, "parsed": [parsed(t) for t in texts], "plain": [plain(t) for t in texts]})


if __name__ == "__main__":
    main()
