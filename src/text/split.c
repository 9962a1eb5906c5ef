#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"

// The published tokenizers' \s is Unicode's White_Space; PCRE2's also takes U+180E.
#define WHITE_SPACE \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

// Groups that repeat per letter keep a frame per letter on the JIT's stack, and a word may be a megabyte.
enum {
    JIT_STACK_START = 32 * 1024,
    JIT_STACK_LIMIT = 512 * 1024 * 1024,
    HEAP_LIMIT_KIB = 1024 * 1024
};

struct mf_splitter {
    const mf_pretokenizer *pre;
    size_t n;
    pcre2_code *code[MF_MAX_SPLITS]; // NULL for splits that are no expression
};

struct mf_split_state {
    const mf_splitter *splitter;
    pcre2_match_data *match[MF_MAX_SPLITS];
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    bool (*word)(void *arg, mf_str word, mf_error *err);
    void *arg;
};

// Writes the pattern with \s and \S spelled out.
static void spell_out(const char *regex, mf_buf *out) {
    bool in_class = false;
    for (const char *p = regex; *p; p++) {
        if (p[0] == '\\' && (p[1] == 's' || p[1] == 'S')) {
            if (in_class)
                mf_buf_text(out, WHITE_SPACE);
            else
                mf_buf_printf(out, "[%s" WHITE_SPACE "]", p[1] == 'S' ? "^" : "");
            p++;
        } else if (p[0] == '\\' && p[1]) {
            mf_buf_add(out, p++, 2);
        } else {
            if (*p == '[') in_class = true;
            if (*p == ']') in_class = false;
            mf_buf_char(out, *p);
        }
    }
}

static void pcre_message(int code, char out[128]) {
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)out, 128) < 0) snprintf(out, 128, "PCRE2 error %d", code);
}

static pcre2_code *compile(const char *regex, const char *name, mf_error *err) {
    mf_buf pattern = {0};
    spell_out(regex, &pattern);
    if (pattern.failed) {
        mf_fail_memory(err, pattern.len, "a pre-tokenizer's expression");
        free(pattern.data);
        return NULL;
    }
    int code;
    PCRE2_SIZE offset;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)pattern.data, pattern.len, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &offset, NULL);
    free(pattern.data);
    if (!compiled) {
        char message[128];
        pcre_message(code, message);
        mf_fail(err, code == PCRE2_ERROR_HEAP_FAILED ? MF_ERR_MEMORY : MF_ERR_INTERNAL,
                "pre-tokenizer '%s': expression at %zu: %s", name, (size_t)offset, message);
        return NULL;
    }
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); // without it (no executable memory) the interpreter does the same
    return compiled;
}

mf_splitter *mf_splitter_new(const mf_pretokenizer *pre, mf_error *err) {
    mf_splitter *s = mf_alloc(1, sizeof *s);
    if (!s) {
        mf_fail_memory(err, sizeof *s, "the pre-tokenizer");
        return NULL;
    }
    s->pre = pre;
    for (; s->n < MF_MAX_SPLITS && pre->splits[s->n].kind != MF_SPLIT_END; s->n++) {
        if (pre->splits[s->n].kind != MF_SPLIT_REGEX) continue;
        s->code[s->n] = compile(pre->splits[s->n].regex, pre->names[0], err);
        if (!s->code[s->n]) {
            mf_splitter_free(s);
            return NULL;
        }
    }
    return s;
}

void mf_splitter_free(mf_splitter *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) pcre2_code_free(s->code[i]);
    free(s);
}

mf_split_state *mf_split_state_new(const mf_splitter *splitter, mf_error *err) {
    mf_split_state *s = mf_alloc(1, sizeof *s);
    bool ok = s != NULL;
    if (ok) {
        s->splitter = splitter;
        s->context = pcre2_match_context_create(NULL);
        s->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_LIMIT, NULL); // NULL: the default stack of 32 KiB
        ok = s->context != NULL;
        for (size_t i = 0; ok && i < splitter->n; i++) {
            if (!splitter->code[i]) continue;
            s->match[i] = pcre2_match_data_create(1, NULL); // the whole match is all that is asked
            ok = s->match[i] != NULL;
        }
    }
    if (!ok) {
        mf_fail_memory(err, sizeof *s, "the pre-tokenizer's state");
        mf_split_state_free(s);
        return NULL;
    }
    pcre2_set_match_limit(s->context, UINT32_MAX); // the expressions are ours and take linear time
    pcre2_set_depth_limit(s->context, UINT32_MAX);
    pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
    if (s->stack) pcre2_jit_stack_assign(s->context, NULL, s->stack);
    return s;
}

void mf_split_state_free(mf_split_state *s) {
    if (!s) return;
    for (size_t i = 0; i < MF_MAX_SPLITS; i++) pcre2_match_data_free(s->match[i]);
    pcre2_match_context_free(s->context);
    pcre2_jit_stack_free(s->stack);
    free(s);
}

static bool cut(mf_split_state *s, size_t level, mf_str piece, mf_error *err);

static bool cut_regex(mf_split_state *s, size_t level, mf_str piece, mf_error *err) {
    size_t at = 0, from = 0; // where the next piece begins, where the next match may
    while (from < piece.len) {
        int rc = pcre2_match(s->splitter->code[level], (PCRE2_SPTR)piece.ptr, piece.len, from, PCRE2_NO_UTF_CHECK,
                             s->match[level], s->context);
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0) {
            char message[128];
            pcre_message(rc, message);
            return mf_fail(err, rc == PCRE2_ERROR_NOMEMORY ? MF_ERR_MEMORY : MF_ERR_INTERNAL,
                           "pre-tokenizer '%s': matching failed: %s", s->splitter->pre->names[0], message);
        }
        const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(s->match[level]);
        size_t start = ovector[0], end = ovector[1];
        if (start > at && !cut(s, level + 1, (mf_str){piece.ptr + at, start - at}, err)) return false;
        if (end > start && !cut(s, level + 1, (mf_str){piece.ptr + start, end - start}, err)) return false;
        at = from = end;
        if (end == start) { // an empty match cuts, and the search goes on one character later
            uint32_t cp;
            int len = start < piece.len ? mf_utf8_decode(piece.ptr + start, piece.len - start, &cp) : 1;
            from = start + (size_t)(len > 0 ? len : 1);
        }
    }
    return at == piece.len || cut(s, level + 1, (mf_str){piece.ptr + at, piece.len - at}, err);
}

static bool is_number(utf8proc_category_t c, mf_digit_rule rule) {
    if (c == UTF8PROC_CATEGORY_ND) return true;
    return rule == MF_DIGITS_ANY && (c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO);
}

static bool is_word(utf8proc_category_t c) { // \w: letters, marks, numbers, connectors
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_PC;
}

// The length of a character of valid UTF-8, and its category.
static size_t character(mf_str text, size_t at, utf8proc_category_t *category) {
    uint32_t cp = 0;
    int len = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
    *category = utf8proc_category((utf8proc_int32_t)cp);
    return len > 0 ? (size_t)len : 1;
}

// Cuts a run of n digits at [start, end), of which all the text before *at has been handed on.
static bool cut_run(mf_split_state *s, size_t level, mf_str piece, size_t start, size_t end, size_t n, size_t *at,
                    mf_error *err) {
    bool inside = s->splitter->pre->splits[level].digits == MF_DIGITS_INSIDE;
    utf8proc_category_t category;
    size_t done = 0;
    for (size_t i = start; i <= end;) {
        bool edge = i == start || i == end;
        bool group = (n - done) % 3 == 0 || edge;
        if (inside) group = i < end && (n - done) % 3 == 0;
        if (group && i > *at) {
            if (!cut(s, level + 1, (mf_str){piece.ptr + *at, i - *at}, err)) return false;
            *at = i;
        }
        if (i == end) break;
        i += character(piece, i, &category);
        done++;
    }
    return true;
}

static bool cut_digits(mf_split_state *s, size_t level, mf_str piece, mf_error *err) {
    mf_digit_rule rule = s->splitter->pre->splits[level].digits;
    size_t at = 0;
    for (size_t i = 0; i < piece.len;) {
        utf8proc_category_t category;
        size_t len = character(piece, i, &category), start = i, n = 0;
        for (; is_number(category, rule); n++) {
            i += len;
            if (i == piece.len) {
                category = UTF8PROC_CATEGORY_CN;
                len = 0;
            } else {
                len = character(piece, i, &category);
            }
        }
        bool takes = n > 0 && !(rule == MF_DIGITS_BOUNDARY && i < piece.len && is_word(category));
        if (takes && !cut_run(s, level, piece, start, i, n, &at, err)) return false;
        i += len;
    }
    return at == piece.len || cut(s, level + 1, (mf_str){piece.ptr + at, piece.len - at}, err);
}

// Recursion is as deep as there are splits: at most MF_MAX_SPLITS.
static bool cut(mf_split_state *s, size_t level, mf_str piece, mf_error *err) {
    if (level == s->splitter->n) return s->word(s->arg, piece, err);
    return s->splitter->code[level] ? cut_regex(s, level, piece, err) : cut_digits(s, level, piece, err);
}

bool mf_split_run(mf_split_state *s, mf_str text, bool (*word)(void *arg, mf_str word, mf_error *err), void *arg,
                  mf_error *err) {
    if (text.len == 0) return true;
    s->word = word;
    s->arg = arg;
    return cut(s, 0, text, err);
}
