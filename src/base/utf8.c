#include "base/utf8.h"

// How many bytes the lead byte announces (0: not a lead byte) and the bounds of the second byte, which is where overlong
// forms, surrogates and values above U+10FFFF show.
static int lead(uint8_t b, uint8_t *low, uint8_t *high) {
    *low = 0x80;
    *high = 0xBF;
    if (b < 0x80) return 1;
    if (b < 0xC2) return 0;
    if (b < 0xE0) return 2;
    if (b < 0xF0) {
        if (b == 0xE0) *low = 0xA0;
        if (b == 0xED) *high = 0x9F;
        return 3;
    }
    if (b < 0xF5) {
        if (b == 0xF0) *low = 0x90;
        if (b == 0xF4) *high = 0x8F;
        return 4;
    }
    return 0;
}

int mf_utf8_decode(const char *text, size_t len, uint32_t *cp) {
    const uint8_t *s = (const uint8_t *)text;
    uint8_t low, high;
    int n = lead(s[0], &low, &high);
    if (n <= 1) {
        *cp = s[0];
        return n;
    }
    uint32_t value = s[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((size_t)i >= len) return -1;
        if (s[i] < low || s[i] > high) return 0;
        value = value << 6 | (s[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *cp = value;
    return n;
}

int mf_utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool mf_utf8_valid(const char *text, size_t len, size_t *bad) {
    size_t i = 0;
    while (i < len) {
        uint32_t cp;
        int n = mf_utf8_decode(text + i, len - i, &cp);
        if (n <= 0) {
            if (bad) *bad = i;
            return false;
        }
        i += (size_t)n;
    }
    return true;
}

size_t mf_utf8_incomplete_tail(const char *text, size_t len) {
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        uint32_t cp;
        if (((uint8_t)text[len - back] & 0xC0) == 0x80) continue;
        return mf_utf8_decode(text + len - back, back, &cp) < 0 ? back : 0;
    }
    return 0;
}

bool mf_utf8_is_control(uint32_t cp) {
    bool direction =
        cp == 0x061C || cp == 0x200E || cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029 || direction;
}

size_t mf_utf8_clean(char *text, size_t len) {
    len -= mf_utf8_incomplete_tail(text, len);
    size_t out = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        int n = mf_utf8_decode(text + i, len - i, &cp);
        if (n <= 0 || mf_utf8_is_control(cp)) {
            text[out++] = '?';
            i += n <= 0 ? 1 : (size_t)n;
        } else {
            for (int k = 0; k < n; k++) text[out++] = text[i++];
        }
    }
    text[out] = 0;
    return out;
}
