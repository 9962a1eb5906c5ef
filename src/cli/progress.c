#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/terminal.h"

#define PATIENCE_NS    300000000ULL // work shorter than this shows no bar
#define CELLS          30           // of a bar, where the window has room for them
#define CELLS_AT_LEAST 5
#define COLUMNS        80 // of a window that does not say

void mf_progress_begin(mf_progress *p, const char *what) {
    *p = (mf_progress){.what = what, .terminal = isatty(STDERR_FILENO), .percent = -1, .started = mf_clock_ns()};
}

// One line of the window: a longer one would go on in the next, and could not be cleared.
static int line_width(void) {
    struct winsize window;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
    return (known ? window.ws_col : COLUMNS) - 1;
}

static void draw(const mf_progress *p, int percent) {
    char bar[CELLS + 1], line[128];
    int width = line_width(), room = width - (int)strlen(p->what) - (int)strlen(" [] 100 %");
    int cells = room < CELLS ? room : CELLS;
    for (int i = 0; i < cells; i++) bar[i] = i < percent * cells / 100 ? '#' : '.';
    if (cells >= CELLS_AT_LEAST)
        snprintf(line, sizeof line, "%s [%.*s] %3d %%", p->what, cells, bar, percent);
    else
        snprintf(line, sizeof line, "%d %%", percent);
    fprintf(stderr, "\r\033[K%.*s", width, line);
}

void mf_progress_update(mf_progress *p, double fraction) {
    int percent = fraction <= 0 ? 0 : fraction >= 1 ? 100 : (int)(fraction * 100);
    if (!p->terminal || percent == p->percent || mf_clock_ns() - p->started < PATIENCE_NS) return;
    mf_terminal_mark(MF_TERMINAL_BAR, true);
    draw(p, percent);
    p->percent = percent;
    p->shown = true;
}

void mf_progress_end(mf_progress *p) {
    if (p->shown) fputs("\r\033[K", stderr);
    mf_terminal_mark(MF_TERMINAL_BAR, false);
    p->shown = false;
}
