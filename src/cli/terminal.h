// The process's surroundings: standard output, progress bars, signals.
#ifndef MF_CLI_TERMINAL_H
#define MF_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Standard output, unbuffered. Zero-initialised is ready.
typedef struct mf_output {
    bool failed; // nothing is written any more
} mf_output;

// False when the text can't be written: quietly where the reader has gone (EPIPE), else with one line.
bool mf_output_write(mf_output *out, const void *bytes, size_t len);
bool mf_output_buf(mf_output *out, const mf_buf *buf); // also false, with a line, when the buffer has failed

// A progress bar on standard error, shown only on a terminal and only when the work takes a while.
typedef struct mf_progress {
    const char *what; // "loading"
    bool terminal, shown;
    int percent;
    unsigned long long started;
} mf_progress;

void mf_progress_begin(mf_progress *p, const char *what);
void mf_progress_update(mf_progress *p, double fraction);
void mf_progress_end(mf_progress *p); // clears the line

// What the terminal is in, beside what it was found in.
enum {
    MF_TERMINAL_KEYS = 1,  // keys come one by one
    MF_TERMINAL_PASTE = 2, // pastes are marked
    MF_TERMINAL_DIM = 4,
    MF_TERMINAL_BAR = 8, // a progress bar is shown
};

#define MF_TERMINAL_PASTE_ON  "\033[?2004h"
#define MF_TERMINAL_PASTE_OFF "\033[?2004l"
#define MF_TERMINAL_DIMMED    "\033[2m"
#define MF_TERMINAL_PLAIN     "\033[0m"

// From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT leave the terminal as it is found now before they end the process, and a file that is
// cut while its map is read ends it with one sentence that names the file.
void mf_terminal_guard(void);
void mf_terminal_mark(int mark, bool on);

// From here on the first Ctrl-C only sets the flag that mf_interrupted reads; the second ends the process.
void mf_interrupt_catch(void);
bool mf_interrupted(void);
void mf_interrupt_clear(void); // what was interrupted has ended: the flag is down again

#endif
