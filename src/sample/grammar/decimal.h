// Bounds of numbers as exact decimals, and the numbers within them as regular expressions.
#ifndef MF_SAMPLE_GRAMMAR_DECIMAL_H
#define MF_SAMPLE_GRAMMAR_DECIMAL_H

#include "base/arena.h"
#include "base/text.h"

// A decimal: digits before the point (without needless zeros; "0" at least) and behind it (without zeros at the end).
typedef struct mf_decimal {
    bool negative; // never of zero
    mf_str whole, fraction;
} mf_decimal;

// Of a JSON number's lexeme. False: an exponent beyond ±400, or memory.
bool mf_decimal_read(mf_arena *arena, mf_str lexeme, mf_decimal *out);
int mf_decimal_compare(const mf_decimal *a, const mf_decimal *b); // as strcmp
bool mf_decimal_is_whole(const mf_decimal *a);

// Appends a regular expression for the numbers without an exponent that are at least (at most) a bound; exclusive: and not it.
void mf_decimal_at_least(const mf_decimal *bound, bool exclusive, bool whole_only, mf_buf *regex);
void mf_decimal_at_most(const mf_decimal *bound, bool exclusive, bool whole_only, mf_buf *regex);

#endif
