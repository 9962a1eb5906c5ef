// UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
#ifndef MF_BASE_UTF8_H
#define MF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Decodes one code point at text[0..len), len > 0. Returns the bytes it takes (1-4) and sets *cp; returns 0 where the
// bytes are not UTF-8, and -1 where they are the start of a character whose rest is missing.
int mf_utf8_decode(const char *text, size_t len, uint32_t *cp);

// Writes cp (at most 0x10FFFF, no surrogate) and returns the bytes written (1-4).
int mf_utf8_encode(uint32_t cp, char out[4]);

// Whether all of it is valid. *bad (may be NULL) gets the offset of the first byte that is not.
bool mf_utf8_valid(const char *text, size_t len, size_t *bad);

// How many bytes at the end of text are an incomplete character (0-3).
size_t mf_utf8_incomplete_tail(const char *text, size_t len);

// Whether a terminal obeys the character instead of showing it: C0, DEL, C1, line and paragraph separators, marks of direction.
bool mf_utf8_is_control(uint32_t cp);

// Makes text[0..len) fit for a one-line message: control characters (mf_utf8_is_control) and bytes that are not UTF-8 become '?', an incomplete character at the end is cut off. Writes a NUL at the new length (text[len] must be
// writable) and returns that length.
size_t mf_utf8_clean(char *text, size_t len);

#endif
