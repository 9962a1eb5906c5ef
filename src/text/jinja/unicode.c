#include "text/jinja/unicode.h"

#include <utf8proc.h>

static bool in_ranges(const mf_code_range *ranges, size_t n, uint32_t cp) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ranges[mid].last < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && ranges[low].first <= cp;
}

static const mf_special_case *find_special(const mf_special_case *table, size_t n, uint32_t cp) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (table[mid].from < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && table[low].from == cp ? &table[low] : NULL;
}

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

static int fold(uint32_t cp, uint32_t out[4]) {
    utf8proc_int32_t folded[4];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, folded, 4, UTF8PROC_CASEFOLD, &boundary);
    if (n < 1 || n > 4) {
        out[0] = cp;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++) out[i] = (uint32_t)folded[i];
    return (int)n;
}

int mf_change_case(uint32_t cp, mf_letter_case to, uint32_t out[4]) {
    if (to == MF_CASE_FOLD) return fold(cp, out);
    const mf_special_case *special = to == MF_CASE_UPPER   ? find_special(mf_unicode_upper, mf_n_unicode_upper, cp)
                                     : to == MF_CASE_LOWER ? find_special(mf_unicode_lower, mf_n_unicode_lower, cp)
                                                           : find_special(mf_unicode_title, mf_n_unicode_title, cp);
    if (special) {
        int n = 0;
        for (; n < 3 && special->to[n]; n++) out[n] = special->to[n];
        return n;
    }
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    out[0] = (uint32_t)(to == MF_CASE_UPPER   ? utf8proc_toupper(c)
                        : to == MF_CASE_LOWER ? utf8proc_tolower(c)
                                              : utf8proc_totitle(c));
    return 1;
}

bool mf_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

bool mf_is_line_end(uint32_t cp) {
    return (cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

bool mf_is_upper(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_LU || in_ranges(mf_unicode_other_upper, mf_n_unicode_other_upper, cp);
}

bool mf_is_lower(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_LL || in_ranges(mf_unicode_other_lower, mf_n_unicode_other_lower, cp);
}

bool mf_is_title(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LT; }

bool mf_is_cased(uint32_t cp) { return mf_is_upper(cp) || mf_is_lower(cp) || mf_is_title(cp); }

bool mf_is_case_ignorable(uint32_t cp) {
    static const mf_code_range middle[] = {{'\'', '\''},     {'.', '.'},       {':', ':'},       {0xB7, 0xB7},
                                           {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
                                           {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
                                           {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || in_ranges(middle, sizeof middle / sizeof middle[0], cp);
}

bool mf_is_alpha(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool mf_is_decimal(uint32_t cp) { return mf_decimal_value(cp) >= 0; }
bool mf_is_digit(uint32_t cp) { return mf_is_decimal(cp) || in_ranges(mf_unicode_digits, mf_n_unicode_digits, cp); }
bool mf_is_numeric(uint32_t cp) { return mf_is_decimal(cp) || in_ranges(mf_unicode_numeric, mf_n_unicode_numeric, cp); }

bool mf_is_printable(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return cp == ' ';
    default: return true;
    }
}

bool mf_is_word(uint32_t cp) { return cp == '_' || mf_is_alpha(cp) || mf_is_numeric(cp); }

int mf_decimal_value(uint32_t cp) {
    size_t low = 0, high = mf_n_unicode_zeros;
    while (low < high) { // the first zero above cp
        size_t mid = low + (high - low) / 2;
        if (mf_unicode_zeros[mid].first <= cp)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0) return -1;
    uint32_t zero = mf_unicode_zeros[low - 1].first;
    return cp - zero < 10 ? (int)(cp - zero) : -1;
}
