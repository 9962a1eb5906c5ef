#define _GNU_SOURCE // memmem, memrchr

#include "text/jinja/string.h"

#include <stdio.h>

#include "base/utf8.h"
#include "text/jinja/run.h"

// ---- Building

static bool room(mf_jbuild *b, size_t more) {
    if (b->failed || (b->failed = !mf_jpay_bytes(b->run, more))) return false;
    size_t want = b->len + more;
    if (want > MF_JINJA_TEXT_MAX) {
        b->failed = true;
        return mf_jfail(b->run, MF_ERR_LIMIT, "a text of more than %d MB", MF_JINJA_TEXT_MAX >> 20);
    }
    if (want <= b->cap) return true;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < want) cap = want;
    char *data = mf_jalloc(b->run, cap, 1);
    b->failed = !data;
    if (!data) return false;
    if (b->len) memcpy(data, b->data, b->len);
    b->data = data;
    b->cap = cap;
    return true;
}

// The first of the marks that end behind the byte `from`.
static uint32_t first_mark(const mf_jstr *s, size_t from) {
    uint32_t low = 0, high = s->n_marks;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->marks[2 * mid + 1] <= from)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void mark(mf_jbuild *b, size_t from, size_t to) {
    if (from == to || b->failed || (b->failed = !mf_jpay(b->run, 1))) return;
    if (b->n_marks && b->marks[2 * b->n_marks - 1] == from) {
        b->marks[2 * b->n_marks - 1] = (uint32_t)to;
        return;
    }
    if (b->n_marks == MF_JINJA_MARKS_MAX) {
        b->failed = true;
        mf_jfail(b->run, MF_ERR_LIMIT, "a text of more than %d pieces of a conversation", MF_JINJA_MARKS_MAX);
        return;
    }
    if (b->n_marks == b->cap_marks) {
        size_t cap = b->cap_marks ? b->cap_marks * 2 : 4;
        uint32_t *marks = mf_jalloc(b->run, cap, 2 * sizeof *marks);
        b->failed = !marks;
        if (!marks) return;
        if (b->n_marks) memcpy(marks, b->marks, b->n_marks * 2 * sizeof *marks);
        b->marks = marks;
        b->cap_marks = cap;
    }
    b->marks[2 * b->n_marks] = (uint32_t)from;
    b->marks[2 * b->n_marks++ + 1] = (uint32_t)to;
}

void mf_jbuild_bytes(mf_jbuild *b, const void *p, size_t n) {
    if (n == 0 || !room(b, n) || !b->data) return;
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

void mf_jbuild_text(mf_jbuild *b, const char *text) { mf_jbuild_bytes(b, text, strlen(text)); }

void mf_jbuild_repeat(mf_jbuild *b, uint32_t cp, int64_t n) {
    char bytes[4];
    size_t len = (size_t)mf_utf8_encode(cp, bytes);
    if (n > MF_JINJA_TEXT_MAX) n = MF_JINJA_TEXT_MAX + 1;
    if (n <= 0 || !room(b, (size_t)n * len) || !b->data) return;
    for (int64_t i = 0; i < n; i++, b->len += len) memcpy(b->data + b->len, bytes, len);
}

// For finding a place among many marks.
static void pay_marks(mf_jbuild *b, const mf_jstr *s) {
    if (s->n_marks > 8 && !b->failed) b->failed = !mf_jpay(b->run, MF_JCOST_SEARCH);
}

void mf_jbuild_part(mf_jbuild *b, const mf_jstr *s, size_t from, size_t to) {
    size_t start = b->len;
    mf_jbuild_bytes(b, s->ptr + from, to - from);
    pay_marks(b, s);
    for (uint32_t i = first_mark(s, from); i < s->n_marks && s->marks[2 * i] < to; i++) {
        size_t low = s->marks[2 * i], high = s->marks[2 * i + 1];
        mark(b, start + (low > from ? low - from : 0), start + (high < to ? high : to) - from);
    }
}

void mf_jbuild_str(mf_jbuild *b, const mf_jstr *s) { mf_jbuild_part(b, s, 0, s->len); }

void mf_jbuild_mark(mf_jbuild *b, size_t from) {
    while (b->n_marks && b->marks[2 * b->n_marks - 2] >= from) b->n_marks--;
    if (b->n_marks && b->marks[2 * b->n_marks - 1] > from) b->marks[2 * b->n_marks - 1] = (uint32_t)from;
    mark(b, from, b->len);
}

void mf_jbuild_as(mf_jbuild *b, const void *p, size_t n, const mf_jstr *s, size_t at) {
    size_t start = b->len;
    mf_jbuild_bytes(b, p, n);
    pay_marks(b, s);
    if (mf_jstr_marked(s, at, at + 1)) mark(b, start, start + n);
}

bool mf_jbuild_done(mf_jbuild *b, mf_jval *out) {
    mf_jstr *s = b->failed ? NULL : mf_jstr_new(b->run, (mf_str){b->data ? b->data : "", b->len});
    if (!s) return false;
    s->marks = b->marks;
    s->n_marks = (uint32_t)b->n_marks;
    *out = mf_jtext(s);
    return true;
}

// ---- Parts

size_t mf_jstr_chars(const mf_jstr *s) {
    if (s->chars != MF_JSTR_UNCOUNTED) return s->chars;
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++) n += ((uint8_t)s->ptr[i] & 0xC0) != 0x80;
    ((mf_jstr *)s)->chars =
        (uint32_t)n; // texts of a compiled template are counted before, so this one is the rendering's own
    return n;
}

bool mf_jstr_marked(const mf_jstr *s, size_t from, size_t to) {
    uint32_t i = first_mark(s, from);
    return i < s->n_marks && s->marks[2 * i] < to;
}

mf_jstr *mf_jstr_part(mf_jrun *run, const mf_jstr *s, size_t from, size_t to) {
    mf_jstr *part = mf_jstr_new(run, (mf_str){s->ptr + from, to - from});
    if (!part || s->n_marks == 0 || from == to) return part;
    mf_jbuild b = {.run = run, .cap = SIZE_MAX};
    for (uint32_t i = first_mark(s, from); i < s->n_marks && s->marks[2 * i] < to; i++) {
        size_t low = s->marks[2 * i], high = s->marks[2 * i + 1];
        low = low > from ? low - from : 0;
        high = (high < to ? high : to) - from;
        if (low == 0 && high == to - from) {
            part->whole[1] = (uint32_t)high;
            part->marks = part->whole;
            part->n_marks = 1;
            return part;
        }
        mark(&b, low, high);
    }
    part->marks = b.marks;
    part->n_marks = (uint32_t)b.n_marks;
    return b.failed ? NULL : part;
}

size_t mf_jstr_offset(const mf_jstr *s, size_t index) {
    if (mf_jstr_chars(s) == s->len) return index < s->len ? index : s->len;
    size_t at = 0;
    for (; at < s->len; at++)
        if (((uint8_t)s->ptr[at] & 0xC0) != 0x80 && index-- == 0) return at;
    return at;
}

uint32_t mf_jstr_next(const mf_jstr *s, size_t *at) {
    uint32_t cp = 0;
    int n = mf_utf8_decode(s->ptr + *at, s->len - *at, &cp);
    *at += n > 0 ? (size_t)n : 1;
    return cp;
}

uint32_t mf_jstr_before(const mf_jstr *s, size_t *at) {
    do --*at;
    while (*at > 0 && ((uint8_t)s->ptr[*at] & 0xC0) == 0x80);
    size_t end = *at;
    return mf_jstr_next(s, &end);
}

bool mf_jstr_find(mf_jrun *run, const mf_jstr *s, mf_str what, size_t from, size_t to, size_t *at) {
    *at = SIZE_MAX;
    if (from > to || what.len > to - from) return true;
    const char *p = what.len ? memmem(s->ptr + from, to - from, what.ptr, what.len) : s->ptr + from;
    if (p) *at = (size_t)(p - s->ptr);
    // memmem may compare a short text at every place; on a long one it spends no more than a few passes.
    uint64_t passes = 1 + (what.len < 256 ? what.len : 256) / 64, looked = (p ? *at : to) - from + what.len;
    return mf_jpay(run, MF_JCOST_SEARCH + looked / (what.len < 2 ? 16 : 2) * passes);
}

bool mf_jstr_rfind(mf_jrun *run, const mf_jstr *s, mf_str what, size_t from, size_t to, size_t *at) {
    *at = SIZE_MAX;
    if (from > to || what.len > to - from) return true;
    if (what.len == 0) return *at = to, true;
    for (size_t end = to - what.len + 1; end > from;) {
        const char *p = memrchr(s->ptr + from, *what.ptr, end - from);
        size_t place = p ? (size_t)(p - s->ptr) : from;
        if (!mf_jpay(run, MF_JCOST_SEARCH / 4 + (end - place + what.len) / 16)) return false;
        if (!p) break;
        if (memcmp(p, what.ptr, what.len) == 0) return *at = place, true;
        end = place;
    }
    return true;
}

static bool part_value(mf_jrun *run, const mf_jstr *s, size_t from, size_t to, mf_jval *out) {
    *out = mf_jtext(mf_jstr_part(run, s, from, to));
    return out->str != NULL;
}

static bool push_part(mf_jrun *run, mf_jgrow *list, const mf_jstr *s, size_t from, size_t to) {
    mf_jval part;
    return part_value(run, s, from, to, &part) && mf_jgrow_push(run, list, part);
}

// ---- Case

// Whether a capital sigma at [at, after) ends a word: a cased letter before it and none behind, case-ignorable ones apart.
static bool ends_word(const mf_jstr *s, size_t at, size_t after) {
    bool before = false;
    while (at > 0) {
        uint32_t cp = mf_jstr_before(s, &at);
        if (mf_is_case_ignorable(cp)) continue;
        before = mf_is_cased(cp);
        break;
    }
    while (before && after < s->len) {
        uint32_t cp = mf_jstr_next(s, &after);
        if (mf_is_case_ignorable(cp)) continue;
        return !mf_is_cased(cp);
    }
    return before;
}

// The character of s at [at, after) in another case, appended.
static void add_cased(mf_jbuild *b, const mf_jstr *s, size_t at, size_t after, uint32_t cp, mf_letter_case to) {
    char bytes[16];
    if (b->failed || (b->failed = !mf_jpay(b->run, cp < 0x80 ? 1 : MF_JCOST_SEARCH))) return;
    if (cp < 0x80) {
        bool upper = cp >= 'A' && cp <= 'Z', lower = cp >= 'a' && cp <= 'z';
        bytes[0] = (char)(cp ^ ((to == MF_CASE_LOWER || to == MF_CASE_FOLD ? upper : lower) ? 0x20 : 0));
        mf_jbuild_as(b, bytes, 1, s, at);
        return;
    }
    uint32_t mapped[4];
    int n = mf_change_case(cp, to, mapped), len = 0;
    if (cp == 0x3A3 && to == MF_CASE_LOWER && ends_word(s, at, after)) mapped[0] = 0x3C2;
    for (int i = 0; i < n; i++) len += mf_utf8_encode(mapped[i], bytes + len);
    mf_jbuild_as(b, bytes, (size_t)len, s, at);
}

bool mf_jstr_case(mf_jrun *run, const mf_jstr *s, mf_letter_case to, mf_jval *out) {
    mf_jbuild b = {.run = run};
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        add_cased(&b, s, start, at, cp, to);
    }
    return mf_jbuild_done(&b, out);
}

bool mf_jstr_title(mf_jrun *run, const mf_jstr *s, mf_jval *out) {
    mf_jbuild b = {.run = run};
    bool inside = false;
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        add_cased(&b, s, start, at, cp, inside ? MF_CASE_LOWER : MF_CASE_TITLE);
        inside = mf_is_cased(cp);
    }
    return mf_jbuild_done(&b, out);
}

bool mf_jstr_capitalize(mf_jrun *run, const mf_jstr *s, mf_jval *out) {
    mf_jbuild b = {.run = run};
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        add_cased(&b, s, start, at, cp, start == 0 ? MF_CASE_TITLE : MF_CASE_LOWER);
    }
    return mf_jbuild_done(&b, out);
}

bool mf_jstr_swapcase(mf_jrun *run, const mf_jstr *s, mf_jval *out) {
    mf_jbuild b = {.run = run};
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        if (mf_is_upper(cp) || mf_is_lower(cp))
            add_cased(&b, s, start, at, cp, mf_is_upper(cp) ? MF_CASE_LOWER : MF_CASE_UPPER);
        else
            mf_jbuild_part(&b, s, start, at);
    }
    return mf_jbuild_done(&b, out);
}

// ---- Cutting

static bool to_strip(const mf_jstr *chars, uint32_t cp) {
    if (!chars) return mf_is_space(cp);
    for (size_t at = 0; at < chars->len;)
        if (mf_jstr_next(chars, &at) == cp) return true;
    return false;
}

bool mf_jstr_strip(mf_jrun *run, const mf_jstr *s, const mf_jstr *chars, unsigned sides, mf_jval *out) {
    size_t from = 0, to = s->len;
    while ((sides & MF_J_LEFT) && from < to) {
        size_t after = from;
        if (!mf_jpay(run, 1 + (chars ? chars->len : 0))) return false;
        if (!to_strip(chars, mf_jstr_next(s, &after))) break;
        from = after;
    }
    while ((sides & MF_J_RIGHT) && to > from) {
        size_t before = to;
        if (!mf_jpay(run, 1 + (chars ? chars->len : 0))) return false;
        if (!to_strip(chars, mf_jstr_before(s, &before))) break;
        to = before;
    }
    return part_value(run, s, from, to, out);
}

bool mf_jstr_replace(mf_jrun *run, const mf_jstr *s, const mf_jstr *old, const mf_jstr *by, int64_t count, mf_jval *out) {
    mf_jbuild b = {.run = run};
    size_t at = 0, found;
    if (old->len == 0) { // between all characters, before the first and behind the last
        for (; count != 0; count--) {
            mf_jbuild_str(&b, by);
            if (at == s->len) break;
            size_t start = at;
            mf_jstr_next(s, &at);
            mf_jbuild_part(&b, s, start, at);
            if (b.failed) return false;
        }
    }
    for (; old->len > 0 && count != 0; count--) {
        if (!mf_jstr_find(run, s, mf_jstr_slice(old), at, s->len, &found)) return false;
        if (found == SIZE_MAX) break;
        mf_jbuild_part(&b, s, at, found);
        mf_jbuild_str(&b, by);
        at = found + old->len;
        if (b.failed) return false;
    }
    mf_jbuild_part(&b, s, at, s->len);
    return mf_jbuild_done(&b, out);
}

static size_t skip_spaces(const mf_jstr *s, size_t at, bool spaces) {
    while (at < s->len) {
        size_t after = at;
        if (mf_is_space(mf_jstr_next(s, &after)) != spaces) break;
        at = after;
    }
    return at;
}

static size_t skip_spaces_back(const mf_jstr *s, size_t at, bool spaces) {
    while (at > 0) {
        size_t before = at;
        if (mf_is_space(mf_jstr_before(s, &before)) != spaces) break;
        at = before;
    }
    return at;
}

static bool split_spaces(mf_jrun *run, const mf_jstr *s, int64_t most, mf_jgrow *list) {
    for (size_t at = skip_spaces(s, 0, true); at < s->len; most--) {
        size_t end = most == 0 ? s->len : skip_spaces(s, at, false); // the last piece keeps its trailing space
        if (!push_part(run, list, s, at, end)) return false;
        at = skip_spaces(s, end, true);
    }
    return true;
}

static bool rsplit_spaces(mf_jrun *run, const mf_jstr *s, int64_t most, mf_jgrow *list) {
    for (size_t at = skip_spaces_back(s, s->len, true); at > 0; most--) {
        size_t start = most == 0 ? 0 : skip_spaces_back(s, at, false);
        if (!push_part(run, list, s, start, at)) return false;
        at = skip_spaces_back(s, start, true);
    }
    return true;
}

static bool split_at(mf_jrun *run, const mf_jstr *s, mf_str sep, int64_t most, mf_jgrow *list) {
    size_t at = 0, found;
    for (; most != 0; most--) {
        if (!mf_jstr_find(run, s, sep, at, s->len, &found)) return false;
        if (found == SIZE_MAX) break;
        if (!push_part(run, list, s, at, found)) return false;
        at = found + sep.len;
    }
    return push_part(run, list, s, at, s->len);
}

static bool rsplit_at(mf_jrun *run, const mf_jstr *s, mf_str sep, int64_t most, mf_jgrow *list) {
    size_t end = s->len, found;
    for (; most != 0; most--) {
        if (!mf_jstr_rfind(run, s, sep, 0, end, &found)) return false;
        if (found == SIZE_MAX) break;
        if (!push_part(run, list, s, found + sep.len, end)) return false;
        end = found;
    }
    return push_part(run, list, s, 0, end);
}

bool mf_jstr_split(mf_jrun *run, const mf_jstr *s, const mf_jstr *sep, int64_t most, bool from_right, mf_jval *out) {
    mf_jgrow list = {0};
    if (sep && sep->len == 0) return mf_jraise(run, "empty separator");
    if (!sep && !mf_jpay(run, s->len)) return false;
    bool ok = sep ? (from_right ? rsplit_at : split_at)(run, s, mf_jstr_slice(sep), most, &list)
                  : (from_right ? rsplit_spaces : split_spaces)(run, s, most, &list);
    if (!ok) return false;
    for (size_t i = 0; from_right && i < list.n / 2; i++) {
        mf_jval item = list.items[i];
        list.items[i] = list.items[list.n - 1 - i];
        list.items[list.n - 1 - i] = item;
    }
    return mf_jgrow_list(run, &list, MF_J_LIST, out);
}

bool mf_jstr_splitlines(mf_jrun *run, const mf_jstr *s, bool keep, mf_jval *out) {
    mf_jgrow list = {0};
    if (!mf_jpay(run, s->len)) return false;
    for (size_t at = 0; at < s->len;) {
        size_t start = at, end = at;
        bool ended = false;
        while (at < s->len && !ended) {
            end = at;
            uint32_t cp = mf_jstr_next(s, &at);
            ended = mf_is_line_end(cp);
            if (cp == '\r' && at < s->len && s->ptr[at] == '\n') at++;
        }
        if (!push_part(run, &list, s, start, keep || !ended ? at : end)) return false;
    }
    return mf_jgrow_list(run, &list, MF_J_LIST, out);
}

bool mf_jstr_cut(mf_jrun *run, const mf_jstr *s, int64_t start, int64_t step, size_t n, mf_jval *out) {
    bool ascii = mf_jstr_chars(s) == s->len; // places are counted where they are not bytes
    if (n == 0) return part_value(run, s, 0, 0, out);
    if (!mf_jpay(run, step != 1 || !ascii ? s->len / 2 : 1)) return false;
    if (step == 1) return part_value(run, s, mf_jstr_offset(s, (size_t)start), mf_jstr_offset(s, (size_t)start + n), out);
    mf_jbuild b = {.run = run};
    size_t at = mf_jstr_offset(s, (size_t)start);
    for (size_t i = 0; i < n; i++) {
        size_t end = at;
        mf_jstr_next(s, &end);
        mf_jbuild_part(&b, s, at, end);
        if (i + 1 == n) break;
        for (int64_t k = 0; k < step; k++) mf_jstr_next(s, &at);
        for (int64_t k = 0; k > step; k--) mf_jstr_before(s, &at);
    }
    return mf_jbuild_done(&b, out);
}

bool mf_jstr_repeat(mf_jrun *run, const mf_jstr *s, int64_t n, mf_jval *out) {
    mf_jbuild b = {.run = run};
    if (s->len && n > MF_JINJA_TEXT_MAX)
        return mf_jfail(run, MF_ERR_LIMIT, "a text of more than %d MB", MF_JINJA_TEXT_MAX >> 20);
    for (int64_t i = 0; s->len && i < n && !b.failed; i++) mf_jbuild_str(&b, s);
    return mf_jbuild_done(&b, out);
}

bool mf_jstr_concat(mf_jrun *run, const mf_jstr *a, const mf_jstr *b, mf_jval *out) {
    mf_jbuild sum = {.run = run};
    if (!room(&sum, (size_t)a->len + b->len)) return false;
    if (a->markup && !b->markup)
        mf_jbuild_str(&sum, a), mf_jescape(&sum, b);
    else if (b->markup && !a->markup)
        mf_jescape(&sum, a), mf_jbuild_str(&sum, b);
    else
        mf_jbuild_str(&sum, a), mf_jbuild_str(&sum, b);
    if (!mf_jbuild_done(&sum, out)) return false;
    out->str->markup = a->markup || b->markup;
    return true;
}

static void pad(mf_jbuild *b, const mf_jstr *fill, int64_t n) {
    size_t from = b->len, at = 0;
    mf_jbuild_repeat(b, fill ? mf_jstr_next(fill, &at) : ' ', n);
    if (fill && mf_jstr_marked(fill, 0, fill->len)) mf_jbuild_mark(b, from);
}

bool mf_jstr_pad(mf_jrun *run, const mf_jstr *s, int64_t left, int64_t right, const mf_jstr *fill, mf_jval *out) {
    mf_jbuild b = {.run = run};
    pad(&b, fill, left);
    mf_jbuild_str(&b, s);
    pad(&b, fill, right);
    return mf_jbuild_done(&b, out);
}

void mf_jescape(mf_jbuild *b, const mf_jstr *s) {
    static const char specials[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    size_t start = 0;
    if (!b->failed) b->failed = !mf_jpay(b->run, s->len);
    for (size_t i = 0; i < s->len && !b->failed; i++) {
        const char *special = s->ptr[i] ? strchr(specials, s->ptr[i]) : NULL;
        if (!special) continue;
        mf_jbuild_part(b, s, start, i);
        const char *name = names[special - specials];
        mf_jbuild_as(b, name, strlen(name), s, i);
        start = i + 1;
    }
    mf_jbuild_part(b, s, start, s->len);
}
