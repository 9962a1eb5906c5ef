#include <signal.h>

#include "cli/terminal.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

void mf_interrupt_catch(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void mf_interrupt_clear(void) { interrupted = 0; }

bool mf_interrupted(void) { return interrupted != 0; }
