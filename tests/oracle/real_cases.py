"""Writes tests/fixtures/real_cases.txt: values of exp, log, sin and cos to 60 digits' precision (mpmath), rounded to double,
and of the float fused multiply-add (exact fractions, rounded once). Usage: python real_cases.py"""

import math
import os
import random
import struct
from fractions import Fraction

import mpmath

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "real_cases.txt")
rng = random.Random(3)


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def round_f32(x, negative_zero):
    """A fraction rounded to float, ties to even, subnormals and overflow included."""
    if x == 0:
        return 0x80000000 if negative_zero else 0
    sign, x = (0x80000000, -x) if x < 0 else (0, x)
    exponent = max(x.numerator.bit_length() - x.denominator.bit_length() - 1, -127)
    while x >= Fraction(2) ** (exponent + 1):
        exponent += 1
    exponent = max(exponent, -126)
    steps = round(x / Fraction(2) ** (exponent - 23))  # Python rounds ties to even
    bits = steps + ((exponent + 126) << 23)
    return sign | min(bits, 0x7F800000)


def fma_bits(a, b, c):
    if any(math.isnan(v) for v in (a, b, c)):
        return 0x7FC00000
    if any(math.isinf(v) for v in (a, b, c)):
        v = a * b + c  # no finite sum is involved
        return 0x7FC00000 if math.isnan(v) else 0x7F800000 if v > 0 else 0xFF800000
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
    return round_f32(exact, product_negative and math.copysign(1, c) < 0)


def any_float():
    u = rng.getrandbits(32)
    kind = rng.randrange(10)
    if kind == 0:
        return f32(u & 0x807FFFFF)  # subnormal
    if kind == 1:
        return f32(u & 0x80FFFFFF | 0x7F000000)  # near overflow, infinities and NaN
    if kind == 2:
        return f32(u & 0xFF800000)  # powers of two, zeros
    if kind < 7:
        return f32(u & 0x807FFFFF | rng.randrange(118, 136) << 23)
    return f32(u)


def clamp(x):
    try:
        return to_f32(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def fma_case(i):
    a, b = any_float(), any_float()
    product = a * b
    finite = math.isfinite(product)
    if i % 4 == 0 or not finite or product == 0:
        c = any_float()
    elif i % 4 == 1:
        c = clamp(-product)  # cancels but for the product's rounding
    elif i % 4 == 2:  # somewhere around the halfway points of the product's and the addend's rounding
        c = clamp(math.ldexp(rng.choice([-1, 1]) * (1 + rng.random()), math.frexp(product)[1] + rng.randrange(-60, 40)))
    else:
        a = f32(0x3F800000 | rng.getrandbits(12) << 11)  # short factors: exact ties are frequent
        b = f32(0x3F800000 | rng.getrandbits(12) << 11)
        c = clamp(math.ldexp(rng.choice([-1.0, 1.0]), rng.randrange(-149, 30)))
    return a, b, c


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] if not math.isnan(x) else 0x7FC00000


def value(f, x):
    return float(f(mpmath.mpf(x)))


def function_cases():
    for i in range(800):
        x = to_f32(rng.uniform(-87, 88.72) if i % 3 else rng.choice([-1, 1]) * 2.0 ** rng.uniform(-30, 6))
        yield "exp32", x, mpmath.exp
    for i in range(500):
        x = rng.uniform(-745, 709.7) if i % 2 else rng.choice([-1, 1]) * 2.0 ** rng.uniform(-60, 9)
        yield "exp64", x, mpmath.exp
    for i in range(500):
        if i % 3 == 0:
            x = 1 + rng.choice([-0.5, 1]) * 2.0 ** rng.uniform(-50, 0)
        elif i % 3 == 1:
            x = struct.unpack("<d", struct.pack("<Q", rng.randrange(1, 0x7FF0000000000000)))[0]
        else:
            x = struct.unpack("<d", struct.pack("<Q", rng.randrange(1, 0x10000000000000)))[0]
        yield "log64", x, mpmath.log
    for i in range(600):
        if i % 3 == 0:
            x = float(rng.randrange(1, 1 << 29) * mpmath.pi / 2)  # as near to a multiple of pi/2 as a double is
        elif i % 3 == 1:
            x = rng.uniform(-(2.0**30), 2.0**30)
        else:
            x = rng.choice([-1, 1]) * 2.0 ** rng.uniform(-40, 10)
        yield "sin64", x, mpmath.sin
        yield "cos64", x, mpmath.cos
    # The double below 2^30 that is nearest to a multiple of pi/2, found by continued fractions (see nearest_to_multiple).
    x = nearest_to_multiple()
    yield "sin64", x, mpmath.sin
    yield "cos64", x, mpmath.cos


def nearest_to_multiple():
    best, found = None, None
    for exponent in range(0, 30):
        unit = mpmath.mpf(2) ** (exponent - 52)  # doubles m * unit, 2^52 <= m < 2^53
        ratio = unit / (mpmath.pi / 2)
        p0, q0, p1, q1, rest = 0, 1, 1, 0, ratio
        while q1 < 2**53:
            whole = int(mpmath.floor(rest))
            p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
            for m in range(-(-(2**52) // q1) * q1, 2**53, q1)[:4] if 0 < q1 < 2**53 else []:
                distance = abs(m * unit - mpmath.nint(m * ratio) * mpmath.pi / 2)
                if best is None or distance < best:
                    best, found = distance, float(m * unit)
            if rest == whole:
                break
            rest = 1 / (rest - whole)
    return found


def main():
    mpmath.mp.dps = 60
    with open(OUT, "w") as out:
        out.write("# made by tests/oracle/real_cases.py with mpmath %s: name x value, or fma a b c value (bits)\n" % mpmath.__version__)
        for name, x, f in function_cases():
            out.write("%s %s %s\n" % (name, x.hex(), value(f, x).hex()))
        for i in range(3000):
            a, b, c = fma_case(i)
            out.write("fma %08x %08x %08x %08x\n" % (bits32(a), bits32(b), bits32(c), fma_bits(a, b, c)))


main()
