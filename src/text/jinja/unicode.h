// Characters as CPython's str methods see them: utf8proc's properties and the tables of what it lacks.
#ifndef MF_TEXT_JINJA_UNICODE_H
#define MF_TEXT_JINJA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mf_code_range {
    uint32_t first, last;
} mf_code_range;

typedef struct mf_special_case {
    uint32_t from, to[3];
} mf_special_case;

extern const mf_special_case mf_unicode_upper[], mf_unicode_lower[], mf_unicode_title[];
extern const size_t mf_n_unicode_upper, mf_n_unicode_lower, mf_n_unicode_title;
extern const mf_code_range mf_unicode_other_lower[], mf_unicode_other_upper[], mf_unicode_digits[], mf_unicode_numeric[],
    mf_unicode_zeros[];
extern const size_t mf_n_unicode_other_lower, mf_n_unicode_other_upper, mf_n_unicode_digits, mf_n_unicode_numeric,
    mf_n_unicode_zeros;

typedef enum mf_letter_case {
    MF_CASE_UPPER,
    MF_CASE_LOWER,
    MF_CASE_TITLE,
    MF_CASE_FOLD,
} mf_letter_case;

// The character in another case: 1 to 3 code points in `out`, whose number is returned.
int mf_change_case(uint32_t cp, mf_letter_case to, uint32_t out[4]);

// str.isspace() and what strip() and split() take, for one character.
bool mf_is_space(uint32_t cp);
bool mf_is_line_end(uint32_t cp); // where splitlines() breaks
bool mf_is_upper(uint32_t cp);
bool mf_is_lower(uint32_t cp);
bool mf_is_title(uint32_t cp);
bool mf_is_cased(uint32_t cp);
bool mf_is_case_ignorable(uint32_t cp);
bool mf_is_alpha(uint32_t cp);
bool mf_is_decimal(uint32_t cp);
bool mf_is_digit(uint32_t cp);
bool mf_is_numeric(uint32_t cp);
bool mf_is_printable(uint32_t cp); // what repr() leaves as it is
bool mf_is_word(uint32_t cp);      // \w of Python's re

// The value of a decimal digit of any script; -1 for other characters.
int mf_decimal_value(uint32_t cp);

#endif
