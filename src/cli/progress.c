#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/terminal.h"

#define PATIENCE_NS 300000000ULL // work shorter than this shows no bar
#define CELLS       30

void mf_progress_begin(mf_progress *p, const char *what) {
    *p = (mf_progress){.what = what, .terminal = isatty(STDERR_FILENO), .percent = -1, .started = mf_clock_ns()};
}

void mf_progress_update(mf_progress *p, double fraction) {
    int percent = fraction <= 0 ? 0 : fraction >= 1 ? 100 : (int)(fraction * 100);
    if (!p->terminal || percent == p->percent || mf_clock_ns() - p->started < PATIENCE_NS) return;
    char bar[CELLS + 1];
    for (int i = 0; i < CELLS; i++) bar[i] = i < percent * CELLS / 100 ? '#' : '.';
    bar[CELLS] = 0;
    fprintf(stderr, "\r%s [%s] %3d %%", p->what, bar, percent);
    p->percent = percent;
    p->shown = true;
}

void mf_progress_end(mf_progress *p) {
    if (p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}
