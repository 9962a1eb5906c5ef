// Signals that stop an answer or end the process. What is done in their handlers is on POSIX's list of what may be done there.
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/terminal.h"

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t marks;
static struct termios at_start;
static bool is_terminal;

void mf_terminal_mark(int mark, bool on) { marks = on ? marks | mark : marks & ~mark; }

static void write_code(int fd, const char *code) {
    ssize_t n = write(fd, code, strlen(code));
    (void)n; // a terminal that is gone needs nothing
}

// Leaves the terminal as it was found. Nothing is done to one that another job is using.
static void restore_terminal(void) {
    if (is_terminal && tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
    if (marks & MF_TERMINAL_KEYS) tcsetattr(STDIN_FILENO, TCSANOW, &at_start);
    if (marks & MF_TERMINAL_PASTE) write_code(STDOUT_FILENO, MF_TERMINAL_PASTE_OFF "\r\n");
    if (marks & MF_TERMINAL_DIM) write_code(STDOUT_FILENO, MF_TERMINAL_PLAIN);
    if (marks & MF_TERMINAL_BAR) write_code(STDERR_FILENO, "\r\033[K");
}

// Ends the process as the signal would have without a handler.
static void die(int number) {
    restore_terminal();
    signal(number, SIG_DFL);
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, number);
    sigprocmask(SIG_UNBLOCK, &it, NULL);
    raise(number);
}

// A file was cut while its map was read: one sentence instead of a crash. All that is called is a walk over a list and what POSIX allows.
static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *file = mf_file_map_at(info->si_addr);
    if (!file) {
        die(number);
        return;
    }
    restore_terminal();
    write_code(STDERR_FILENO, "error: '");
    write_code(STDERR_FILENO, file);
    write_code(STDERR_FILENO, "' has been cut or can't be read any more while it is in use\n");
    _exit(MF_EXIT_REFUSED);
}

static void on_interrupt(int number) {
    if (interrupted) die(number);
    interrupted = 1;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void mf_terminal_guard(void) {
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    is_terminal = tcgetattr(STDIN_FILENO, &at_start) == 0;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        struct sigaction before;
        // What nohup and the like let the process ignore stays so.
        if (sigaction(deadly[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) handle(deadly[i], die);
    }
    struct sigaction bus = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
}

void mf_interrupt_catch(void) { handle(SIGINT, on_interrupt); }

void mf_interrupt_clear(void) { interrupted = 0; }

bool mf_interrupted(void) { return interrupted != 0; }
