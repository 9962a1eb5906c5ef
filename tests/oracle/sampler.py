#!/usr/bin/env python3
"""A plain reference of the sampler's chain (docs/sampling.md), stage by stage, in double precision.

    python3 tests/oracle/sampler.py > tests/fixtures/sampler.txt

Needs nothing but Python. Logits come out of the counter generator, so the fixture holds configs and results only. A case whose
outcome hangs on a rounding error (a cut, a draw or an order closer than MARGIN) is made again with the next seed.
"""
import math
import platform
import struct

MARGIN = 1e-5
MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


class TooClose(Exception):
    pass


def apart(a, b):
    """Whether a < b, refusing to decide a close call (equal numbers are no call: they are ties)."""
    if a != b and abs(a - b) <= MARGIN * max(abs(a), abs(b)):
        raise TooClose
    return a < b


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def philox(counter, key):
    """Philox4x32-10, Salmon et al., SC11."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK32, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def uniform(seed, index, draw):
    out = philox([index & MASK32, index >> 32, draw & MASK32, draw >> 32], [seed & MASK32, seed >> 32])
    return ((out[1] << 32 | out[0]) >> 11) * 2.0**-53


DEFAULTS = dict(
    seed=42, temp=0.8, top_k=40, top_p=0.95, min_p=0.0, typical=1.0, top_n_sigma=0.0, xtc_probability=0.0, xtc_threshold=0.1,
    repeat_penalty=1.1, frequency_penalty=0.0, presence_penalty=0.0, repeat_last_n=64, dry_multiplier=0.0, dry_base=1.75,
    dry_allowed_length=2, dry_penalty_last_n=64, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1, mirostat_m=100)
PLAIN = dict(temp=1.0, top_k=0, top_p=1.0, repeat_penalty=1.0)


def make_logits(case, step):
    """Four uniforms summed, scaled, put on a grid (for ties), with holes of -infinity."""
    logits = []
    for i in range(case["vocab"]):
        x = sum(uniform(case["logits"][0], i, 4 * step + j) for j in range(4)) - 2
        x *= case["logits"][1]
        grid, holes = case["logits"][2], case["logits"][3]
        if grid:
            x = math.floor(x / grid) * grid
        if uniform(case["logits"][0] + 1, i, step) < holes:
            x = -math.inf
        logits.append(f32(x))
    return logits


def penalize(p, logits, history):
    window = history[-p["repeat_last_n"]:] if p["repeat_last_n"] else []
    if p["repeat_penalty"] == 1 and not p["frequency_penalty"] and not p["presence_penalty"]:
        return
    for t in set(window):
        x = logits[t]
        x = f32(x / p["repeat_penalty"]) if x > 0 else f32(x * p["repeat_penalty"])
        off = f32(f32(window.count(t) * p["frequency_penalty"]) + p["presence_penalty"])
        logits[t] = f32(x - off)


def dry(p, logits, history, breakers):
    if not p["dry_multiplier"] or not p["dry_penalty_last_n"]:
        return
    window = history[-p["dry_penalty_last_n"]:]
    n, allowed = len(window), p["dry_allowed_length"]
    if n <= allowed:
        return
    limit = n
    for start in range(n - 1, -1, -1):  # the newest breaker, the longest of those that begin there
        lengths = [len(b) for b in breakers if window[start:start + len(b)] == list(b)]
        if lengths:
            limit = n - start - max(lengths)
            break
    if limit < allowed:
        return
    longest = {}
    for end in range(1, n):  # window[:end] ends like the whole window; window[end] would go on
        same = 0
        while same < end and window[end - 1 - same] == window[n - 1 - same]:
            same += 1
        same = min(same, limit)
        if same >= allowed:
            longest[window[end]] = max(longest.get(window[end], 0), same)
    for t, same in longest.items():
        if (t,) not in [tuple(b) for b in breakers]:
            logits[t] = f32(logits[t] - f32(p["dry_multiplier"] * p["dry_base"] ** (same - allowed)))


def softmax(c):
    top = max(x for _, x in c)
    w = [math.exp(x - top) for _, x in c]
    total = sum(w)
    return [x / total for x in w]


def ranked(c):
    return sorted(c, key=lambda t: (-t[1], t[0]))


def top_n_sigma(p, c):
    if not p["top_n_sigma"]:
        return c
    mean = sum(x for _, x in c) / len(c)
    sigma = math.sqrt(sum((x - mean) ** 2 for _, x in c) / len(c))
    floor = max(x for _, x in c) - p["top_n_sigma"] * sigma
    return [(i, x) for i, x in c if not apart(x, floor)]


def top_k(p, c, vocab):
    return ranked(c)[:p["top_k"]] if 0 < p["top_k"] < vocab else c


def typical(p, c):
    if p["typical"] >= 1:
        return c
    probs = softmax(c)
    entropy = -sum(q * math.log(q) for q in probs)
    order = sorted(range(len(c)), key=lambda n: (abs(-math.log(probs[n]) - entropy), c[n][0]))
    kept, total = [], 0
    for at, n in enumerate(order):
        kept.append(c[n])
        total += probs[n]
        if apart(p["typical"], total):
            score = [abs(-math.log(probs[m]) - entropy) for m in order[max(0, at):at + 2]]
            if len(score) == 2:
                apart(*score)
            break
    return ranked(kept)


def top_p(p, c):
    if p["top_p"] >= 1:
        return c
    c = ranked(c)
    total = 0
    for n, q in enumerate(softmax(c)):
        total += q
        if not apart(total, p["top_p"]):
            return c[:n + 1]
    return c


def min_p(p, c):
    if not p["min_p"]:
        return c
    floor = max(x for _, x in c) + math.log(p["min_p"])
    return [(i, x) for i, x in c if not apart(x, floor)]


def xtc(p, c, index):
    if not p["xtc_probability"] or p["xtc_threshold"] > 0.5 or len(c) < 2:
        return c
    if uniform(p["seed"], index, 1) >= p["xtc_probability"]:
        return c
    likely = [t for t, q in zip(c, softmax(c)) if not apart(q, p["xtc_threshold"])]
    return [t for t in c if t not in ranked(likely)[:-1]]


def temperature(p, c):
    return [(i, x / p["temp"]) for i, x in c]


def draw(p, c, index):
    probs, u, total = softmax(c), uniform(p["seed"], index, 0), 0
    for n, q in enumerate(probs):
        total += q
        if n + 1 == len(c) or apart(u, total):
            return c[n][0], probs


def mirostat1(p, c, vocab, mu):
    c = ranked(c)
    pairs = range(min(p["mirostat_m"], len(c)) - 1)
    if len(pairs) == 0:
        return c[:1]
    t = [math.log((i + 2) / (i + 1)) for i in pairs]
    b = [c[i][1] - c[i + 1][1] for i in pairs]
    s = sum(x * y for x, y in zip(t, b)) / sum(x * x for x in t)
    eps = s - 1
    k = ((eps * 2**mu) / (1 - vocab ** -eps)) ** (1 / s)
    if abs(k - round(k)) < 1e-3:
        raise TooClose
    return c[:max(1, int(k))]


def mirostat2(c, mu):
    kept = [t for t, q in zip(c, softmax(c)) if not apart(mu, -math.log2(q))]
    return kept or ranked(c)[:1]


def run(case):
    p = {k: f32(v) if isinstance(v, float) else v for k, v in {**DEFAULTS, **case["set"]}.items()}
    history, tokens, mu = list(case["prompt"]), [], 2 * p["mirostat_tau"]
    for step in range(case["steps"]):
        logits = make_logits(case, step)
        for t, b in case["bias"]:
            logits[t] = f32(logits[t] + f32(b))
        penalize(p, logits, history)
        dry(p, logits, history, case["breakers"])
        c = [(i, x) for i, x in enumerate(logits) if x > -math.inf]
        if p["temp"] == 0:
            token, c, probs = ranked(c)[0][0], ranked(c)[:1], [1.0]
        elif p["mirostat"]:
            c = mirostat1(p, c, case["vocab"], mu) if p["mirostat"] == 1 else mirostat2(c, mu)
            token, probs = draw(p, c, step)
            surprise = -math.log2(probs[[i for i, _ in c].index(token)])
            mu -= p["mirostat_eta"] * (surprise - p["mirostat_tau"])
        else:
            c = min_p(p, top_p(p, typical(p, top_k(p, top_n_sigma(p, c), case["vocab"]))))
            c = temperature(p, xtc(p, c, step))
            token, probs = draw(p, c, step)
        tokens.append(token)
        history.append(token)
    return tokens, [(i, q) for (i, _), q in zip(c, probs)]


def case(name, vocab=256, scale=6.0, grid=0.0, holes=0.0, steps=6, prompt=(), bias=(), breakers=(), plain=False, **params):
    values = {**(PLAIN if plain else {}), **params}
    return dict(name=name, vocab=vocab, logits=[1000, scale, grid, holes], steps=steps, prompt=prompt, bias=bias,
                breakers=breakers, set=values)


PROMPT = [5, 9, 5, 7, 30, 31, 5, 9, 5, 200, 63, 64, 0, 255, 5]
LOOP = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 9, 5, 6, 7, 1, 2, 3, 4]
CASES = [
    case("defaults", prompt=PROMPT),
    case("defaults, 512 tokens, flat", vocab=512, scale=1.0, prompt=PROMPT),
    case("a vocabulary that fills no block", vocab=100, prompt=[99, 98]),
    case("a vocabulary of one", vocab=1, steps=2),
    case("greedy", temp=0.0, prompt=PROMPT),
    case("greedy, ties go to the lowest id", temp=0.0, grid=2.0, prompt=PROMPT),
    case("greedy without penalties", temp=0.0, repeat_penalty=1.0, steps=2),
    case("another seed", seed=0xFEDCBA9876543210, prompt=PROMPT),
    case("temperature alone", plain=True, temp=1.7, steps=3),
    case("a tiny temperature", plain=True, temp=1e-6),
    case("holes", plain=True, vocab=128, holes=0.7),
    case("top-k under the number of blocks", plain=True, vocab=512, top_k=5),
    case("top-k over the number of blocks", plain=True, vocab=512, top_k=60, scale=3.0),
    case("top-k, ties at the cut", plain=True, vocab=512, top_k=7, grid=1.0),
    case("top-k over the vocabulary", plain=True, vocab=70, top_k=1000),
    case("top-k and holes", plain=True, vocab=300, top_k=6, holes=0.9),
    case("top-p alone, narrowed", plain=True, vocab=512, top_p=0.6),
    case("top-p alone, flat", plain=True, vocab=512, scale=0.5, top_p=0.3, steps=2),
    case("top-p alone, short", plain=True, vocab=64, top_p=0.9),
    case("top-p of 0", plain=True, top_p=0.0),
    case("min-p", plain=True, min_p=0.1),
    case("min-p of 1", plain=True, min_p=1.0, grid=1.0, scale=2.0),
    case("typical", plain=True, typical=0.5),
    case("typical behind top-k", plain=True, typical=0.7, top_k=30),
    case("typical with ties", plain=True, typical=0.4, grid=0.5, vocab=90),
    case("top-n-sigma", plain=True, top_n_sigma=1.5, vocab=200),
    case("top-n-sigma, holes, top-k", plain=True, top_n_sigma=2.0, vocab=512, holes=0.5, top_k=4),
    case("xtc always", plain=True, xtc_probability=1.0, xtc_threshold=0.05, top_k=20),
    case("xtc sometimes", plain=True, xtc_probability=0.5, xtc_threshold=0.02, steps=12),
    case("xtc, ties", plain=True, xtc_probability=1.0, xtc_threshold=0.02, grid=2.0, vocab=64),
    case("xtc off", plain=True, xtc_probability=1.0, xtc_threshold=0.6, vocab=64),
    case("repeat penalty", plain=True, repeat_penalty=1.8, prompt=PROMPT, scale=3.0, steps=2),
    case("frequency and presence", plain=True, frequency_penalty=0.7, presence_penalty=0.4, prompt=PROMPT, vocab=256, steps=2),
    case("a bonus for repeating", plain=True, repeat_penalty=0.5, frequency_penalty=-0.5, prompt=PROMPT, top_k=30),
    case("a window of 3", plain=True, repeat_penalty=1.5, frequency_penalty=1.0, repeat_last_n=3, prompt=PROMPT, top_k=50, steps=9),
    case("a window of 0", repeat_penalty=1.5, repeat_last_n=0, prompt=PROMPT),
    case("logit bias", plain=True, bias=[(3, 12.5), (200, -100.0), (7, 4.0), (7, 4.0)], top_k=10),
    case("dry", plain=True, vocab=64, scale=1.0, dry_multiplier=0.8, prompt=LOOP, steps=3),
    case("dry, window", plain=True, vocab=64, scale=1.0, dry_multiplier=0.8, dry_penalty_last_n=10, prompt=LOOP, steps=2),
    case("dry, length 1", plain=True, vocab=16, scale=1.0, dry_multiplier=1.5, dry_base=2.0, dry_allowed_length=1, prompt=LOOP),
    case("dry, length 0", plain=True, vocab=16, scale=1.0, dry_multiplier=0.5, dry_allowed_length=0, prompt=LOOP),
    case("dry, breaker", plain=True, vocab=64, scale=1.0, dry_multiplier=0.8, prompt=LOOP, breakers=[[2]], steps=2),
    case("dry, breakers", plain=True, vocab=32, scale=1.0, dry_multiplier=0.8, prompt=LOOP, breakers=[[1, 2], [7, 1], [7], [5]]),
    case("dry, long breaker", plain=True, vocab=32, scale=1.0, dry_multiplier=0.8, prompt=LOOP, dry_allowed_length=1,
         breakers=[[7, 1, 2], [7, 9], [3, 3]], steps=2),
    case("dry, all one token", plain=True, vocab=8, scale=1.0, dry_multiplier=0.1, dry_base=1.2, prompt=[3] * 40),
    case("mirostat 1", mirostat=1, repeat_penalty=1.0, scale=8.0, vocab=512, mirostat_tau=3.0, steps=12),
    case("mirostat 1, few to estimate from", mirostat=1, repeat_penalty=1.0, vocab=128, mirostat_tau=2.0, mirostat_m=5, steps=12),
    case("mirostat 2", mirostat=2, repeat_penalty=1.0, vocab=512, mirostat_tau=2.0, mirostat_eta=0.3, steps=16),
    case("mirostat 2, only the best", mirostat=2, repeat_penalty=1.0, vocab=64, scale=2.0, mirostat_tau=0.0, steps=4),
    case("everything", vocab=333, scale=4.0, grid=0.125, holes=0.2, temp=1.3, top_k=50, top_p=0.9, min_p=0.02, typical=0.95,
         top_n_sigma=3.0, xtc_probability=0.5, xtc_threshold=0.08, frequency_penalty=0.2, presence_penalty=0.1,
         repeat_last_n=20, dry_multiplier=0.8, prompt=LOOP + PROMPT, breakers=[[30]], bias=[(11, 3.0)], steps=16),
]


def settle(c):
    for _ in range(100):
        try:
            return run(c)
        except TooClose:
            c["logits"][0] += 2
    raise SystemExit(f"{c['name']}: always close")


def main():
    print(f"# tests/oracle/sampler.py, Python {platform.python_version()}")
    for n, c in enumerate(CASES):
        c["logits"][0] += 1000 * n
        tokens, survivors = settle(c)
        print(f"\ncase {c['name']}\nvocab {c['vocab']}")
        print("logits", *c["logits"])
        for k, v in c["set"].items():
            print(f"set {k} {v}")
        for t, b in c["bias"]:
            print(f"bias {t} {b}")
        for b in c["breakers"]:
            print("breaker", *b)
        if c["prompt"]:
            print("prompt", *c["prompt"])
        print("tokens", *tokens)
        for t, q in survivors:
            print(f"survivor {t} {q:.8g}")
        print("end")


if __name__ == "__main__":
    main()
