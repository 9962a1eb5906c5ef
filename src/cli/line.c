#include "cli/line.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/terminal.h"

#define HISTORY_LINES   1000
#define PASTE_BEGIN     "\033[200~"
#define PASTE_END       "\033[201~"
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"
#define PASTE_MAX       ((size_t)1 << 20) // characters
#define SAMPLE          32                // characters by which a line's ends are known again as those of a paste

struct mf_line_reader {
    EditLine *el; // NULL: no terminal
    History *history;
    char *history_file;
    const char *prompt;
    bool cancelled, too_long;
    bool prefilled;                              // the next paste is the program's own
    bool begun;                                  // a plain line was read
    wchar_t first[SAMPLE + 1], last[SAMPLE + 1]; // of what was pasted at the line's beginning and at its end
};

static char *show_prompt(EditLine *el) {
    mf_line_reader *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    static char none[] = "";
    // libedit asks for char * and does not write to it.
    return r && r->prompt ? (char *)(uintptr_t)r->prompt : none;
}

static unsigned char cancel(EditLine *el, int key) {
    (void)key;
    mf_line_reader *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    if (r) r->cancelled = true;
    return CC_NEWLINE;
}

typedef mf_array(wchar_t) wide_text;

// Takes everything up to the end of a paste. False: the input ended.
static bool take_paste(EditLine *el, wide_text *text, bool *fits) {
    static const char end[] = PASTE_END;
    wchar_t c, before = 0;
    for (size_t matched = 0; end[matched]; before = c) {
        if (el_wgetc(el, &c) != 1) return false;
        matched = c == (wchar_t)end[matched] ? matched + 1 : c == (wchar_t)end[0];
        if (c == L'\n' && before == L'\r') continue;
        wchar_t kept = c == L'\r' ? L'\n' : c == 0 ? (wchar_t)0xFFFD : c;
        *fits = *fits && text->len < PASTE_MAX && mf_array_push(text, kept);
    }
    if (*fits) text->data[text->len -= sizeof end - 1] = 0;
    return true;
}

// Remembers what the line begins and ends with, as far as that is pasted.
static void remember_paste(mf_line_reader *r, const LineInfoW *line, const wide_text *text) {
    size_t n = text->len < SAMPLE ? text->len : SAMPLE;
    if (line->cursor == line->buffer) {
        size_t word = wcscspn(text->data, L" \t\n");
        if (word < n) n = word ? word : 1;
        wmemcpy(r->first, text->data, n);
        r->first[n] = 0;
    }
    if (line->cursor == line->lastchar) {
        n = text->len < SAMPLE ? text->len : SAMPLE;
        wmemcpy(r->last, text->data + text->len - n, n);
        r->last[n] = 0;
    }
}

// Puts a paste into the line, line ends too. One that is too long ends the line, which is refused.
static unsigned char paste(EditLine *el, int key) {
    (void)key;
    mf_line_reader *r = NULL;
    el_get(el, EL_CLIENTDATA, &r);
    wide_text text = {0};
    bool fits = true, inserted = true;
    if (!take_paste(el, &text, &fits)) return free(text.data), CC_EOF;
    if (fits && text.len > 0) {
        if (!r->prefilled) remember_paste(r, el_wline(el), &text);
        inserted = el_winsertstr(el, text.data) == 0;
    }
    r->prefilled = false;
    r->too_long = !fits || !inserted;
    free(text.data);
    return r->too_long ? CC_NEWLINE : CC_REFRESH;
}

// What is typed is UTF-8, whatever the locale says of it.
static void choose_locale(void) {
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1 && !setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "UTF-8");
}

static bool open_editor(mf_line_reader *r) {
    choose_locale();
    r->el = el_init("minfer", stdin, stdout, stderr);
    r->history = r->el ? history_init() : NULL;
    if (!r->history) return false;
    HistEvent event;
    history(r->history, &event, H_SETSIZE, HISTORY_LINES);
    history(r->history, &event, H_SETUNIQUE, 1);
    if (r->history_file) history(r->history, &event, H_LOAD, r->history_file);
    el_set(r->el, EL_CLIENTDATA, r);
    el_set(r->el, EL_PROMPT, show_prompt);
    el_set(r->el, EL_EDITOR, "emacs");
    el_set(r->el, EL_SIGNAL, 0);
    el_set(r->el, EL_HIST, history, r->history);
    // Ctrl-C is a key while a line is edited, and a paste's CR LF can be told from an empty line.
    el_set(r->el, EL_SETTY, "-d", "-isig", "-inlcr", "-icrnl", NULL);
    // The wide form: the other one copies both texts and never frees them.
    el_wset(r->el, EL_ADDFN, L"mf-cancel", L"drops the line", cancel);
    el_set(r->el, EL_BIND, "^C", "mf-cancel", NULL);
    el_wset(r->el, EL_ADDFN, L"mf-paste", L"takes a pasted text", paste);
    el_set(r->el, EL_BIND, PASTE_BEGIN, "mf-paste", NULL);
    el_set(r->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    return true;
}

mf_line_reader *mf_line_reader_new(const char *history_file, mf_error *err) {
    mf_line_reader *r = mf_alloc(1, sizeof *r);
    if (!r) return mf_fail_memory(err, sizeof *r, "the line reader"), NULL;
    *r = (mf_line_reader){0};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return r;
    if (history_file) r->history_file = mf_copy_text(history_file, strlen(history_file));
    if ((history_file && !r->history_file) || !open_editor(r)) {
        mf_line_reader_free(r);
        return mf_fail_memory(err, sizeof *r, "the line editor"), NULL;
    }
    return r;
}

// Written beside the old one and renamed.
static void write_history(mf_line_reader *r) {
    mf_buf name = {0};
    mf_buf_printf(&name, "%s.%ld", r->history_file, (long)getpid());
    if (name.failed) return;
    mf_file_make_folders(r->history_file);
    int fd = open(name.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HistEvent event;
    bool ok = fd >= 0 && close(fd) == 0 && history(r->history, &event, H_SAVE, name.data) >= 0;
    if (!ok || rename(name.data, r->history_file) != 0) {
        mf_log(MF_LOG_NOTICE, "the history could not be written to '%s': %s", r->history_file, strerror(errno));
        unlink(name.data);
    }
    free(name.data);
}

void mf_line_reader_free(mf_line_reader *r) {
    if (!r) return;
    if (r->history && r->history_file) write_history(r);
    if (r->history) history_end(r->history);
    if (r->el) el_end(r->el);
    free(r->history_file);
    free(r);
}

bool mf_line_terminal(const mf_line_reader *r) { return r->el != NULL; }

// What does not fit below the buffer's limit is read all the same and only counts as failed.
static mf_line_end read_plain(mf_line_reader *r, mf_buf *out) {
    size_t start = out->len;
    int c = getc(stdin);
    if (c == EOF) return MF_LINE_EOF;
    mf_buf_text(out, ""); // an empty line is an empty text
    for (; c != EOF && c != '\n'; c = getc(stdin)) mf_buf_char(out, (char)c);
    if (c == '\n' && out->len > start && out->data[out->len - 1] == '\r') out->data[--out->len] = 0;
    if (!r->begun && !out->failed && out->len >= start + 3 && memcmp(out->data + start, BYTE_ORDER_MARK, 3) == 0)
        memmove(out->data + start, out->data + start + 3, (out->len -= 3) - start + 1);
    r->begun = true;
    return MF_LINE_ENTERED;
}

// Which ends of the line are those of pastes. Editing them makes them typed.
static mf_line_pasted find_pasted(const mf_line_reader *r) {
    const LineInfoW *line = el_wline(r->el);
    size_t first = wcslen(r->first), last = wcslen(r->last), len = (size_t)(line->lastchar - line->buffer);
    if (len && line->lastchar[-1] == L'\n') len--; // of the key that ended the line
    return (mf_line_pasted){first && len >= first && wmemcmp(line->buffer, r->first, first) == 0,
                            last && len >= last && wmemcmp(line->buffer + len - last, r->last, last) == 0};
}

mf_line_end mf_line_read(mf_line_reader *r, const char *prompt, mf_buf *out, mf_line_pasted *pasted) {
    if (pasted) *pasted = (mf_line_pasted){0};
    if (!r->el) return read_plain(r, out);
    r->prompt = prompt;
    r->cancelled = r->too_long = false;
    r->first[0] = r->last[0] = 0;
    int n = 0;
    el_resize(r->el); // the window may have changed since the last line
    mf_terminal_mark(MF_TERMINAL_KEYS | MF_TERMINAL_PASTE, true);
    fputs(MF_TERMINAL_PASTE_ON, stdout);
    fflush(stdout);
    // The prompt must not be shown before the terminal hands over single keys: what is typed between would be a line of its own.
    el_set(r->el, EL_PREP_TERM, 1);
    errno = 0;
    const char *line = el_gets(r->el, &n);
    bool signalled = !line && errno == EINTR;
    fputs(MF_TERMINAL_PASTE_OFF, stdout);
    fflush(stdout);
    mf_terminal_mark(MF_TERMINAL_KEYS | MF_TERMINAL_PASTE, false);
    if (r->too_long) mf_log(MF_LOG_ERROR, "a paste of over %zu characters is not taken", PASTE_MAX);
    if (r->cancelled || r->too_long || signalled) return MF_LINE_CANCELLED;
    if (!line || n <= 0) return MF_LINE_EOF;
    if (pasted) *pasted = find_pasted(r);
    mf_buf_add(out, line, (size_t)n - (line[n - 1] == '\n'));
    return MF_LINE_ENTERED;
}

void mf_line_prefill(mf_line_reader *r, mf_str text) {
    if (!r->el) return;
    mf_buf typed = {0};
    // As a paste, so that no byte of it is a command of the editor; nothing in it may end the paste.
    mf_buf_text(&typed, PASTE_BEGIN);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '\033') mf_buf_char(&typed, text.ptr[i]);
    mf_buf_text(&typed, PASTE_END);
    r->prefilled = !typed.failed;
    if (!typed.failed) el_push(r->el, typed.data);
    free(typed.data);
}

void mf_line_remember(mf_line_reader *r, const char *text) {
    HistEvent event;
    if (r->history && *text) history(r->history, &event, H_ENTER, text);
}

bool mf_line_history_path(mf_buf *out) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state)
        mf_buf_printf(out, "%s/minfer/history", state);
    else if (home && *home)
        mf_buf_printf(out, "%s/.local/state/minfer/history", home);
    return out->len > 0 && !out->failed;
}
