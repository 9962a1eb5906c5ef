#!/usr/bin/env python3
"""Writes src/text/jinja/unicode_tables.c out of this Python's str methods: what utf8proc does not know. unicode_tables.py > FILE"""
import sys
import unicodedata

CODE_POINTS = [chr(cp) for cp in range(0x110000) if not 0xD800 <= cp <= 0xDFFF]


def ranges(chosen):
    out = []
    for cp in chosen:
        if out and out[-1][1] == cp - 1:
            out[-1][1] = cp
        else:
            out.append([cp, cp])
    return out


def print_rows(rows, width):
    line = "   "
    for row in rows:
        if len(line) + len(row) + 1 > width:
            print(line)
            line = "   "
        line += " " + row
    print(line)


def print_ranges(name, comment, chosen):
    rows = [f"{{0x{a:X}, 0x{b:X}}}," for a, b in ranges(ord(c) for c in chosen)]
    print(f"\n// {comment}\nconst mf_code_range mf_unicode_{name}[] = {{")
    print_rows(rows, 125)
    print(f"}};\nconst size_t mf_n_unicode_{name} = {len(rows)};")


def print_special(name, method):
    rows = []
    for c in CODE_POINTS:
        mapped = getattr(c, method)()
        if len(mapped) > 1:
            rows.append(f"{{0x{ord(c):X}, {{{', '.join(f'0x{ord(m):X}' for m in mapped)}}}}},")
    print(f"\n// str.{method}() where it gives several characters.\nconst mf_special_case mf_unicode_{name}[] = {{")
    print_rows(rows, 125)
    print(f"}};\nconst size_t mf_n_unicode_{name} = {len(rows)};")


print(f"""// Unicode {unicodedata.unidata_version} as CPython {sys.version.split()[0]} has it, where utf8proc has no such property. Written by
// tests/oracle/unicode_tables.py. All tables are sorted.
// clang-format off
#include "text/jinja/unicode.h\"""")
print_special("upper", "upper")
print_special("lower", "lower")
print_special("title", "title")
category = unicodedata.category
print_ranges("other_lower", "str.islower() outside category Ll.", [c for c in CODE_POINTS if c.islower() and category(c) != "Ll"])
print_ranges("other_upper", "str.isupper() outside category Lu.", [c for c in CODE_POINTS if c.isupper() and category(c) != "Lu"])
print_ranges("digits", "str.isdigit() without str.isdecimal().", [c for c in CODE_POINTS if c.isdigit() and not c.isdecimal()])
print_ranges("numeric", "str.isnumeric() without str.isdecimal().", [c for c in CODE_POINTS if c.isnumeric() and not c.isdecimal()])
print_ranges("zeros", "The digits zero, each followed by the nine others of its script.",
             [c for c in CODE_POINTS if c.isdecimal() and unicodedata.decimal(c) == 0])
