#include "base/log.h"

#include "base/file.h"
#include "base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic mf_log_level highest = MF_LOG_NOTICE;
static pthread_mutex_t sink_turn = PTHREAD_MUTEX_INITIALIZER;
static mf_log_fn *sink;
static void *sink_arg;

void mf_log_set_level(mf_log_level level) { atomic_store_explicit(&highest, level, memory_order_relaxed); }

bool mf_log_enabled(mf_log_level level) { return level <= atomic_load_explicit(&highest, memory_order_relaxed); }

void mf_log_set_sink(mf_log_fn *fn, void *arg) {
    pthread_mutex_lock(&sink_turn);
    sink = fn;
    sink_arg = arg;
    pthread_mutex_unlock(&sink_turn);
}

// Gives a line to the sink; false where there is none.
static bool give_to_sink(mf_log_level level, const char *line) {
    pthread_mutex_lock(&sink_turn);
    bool given = sink != NULL;
    if (given) sink(sink_arg, level, line);
    pthread_mutex_unlock(&sink_turn);
    return given;
}

static void write_all(const char *bytes, size_t len) {
    while (len) {
        ssize_t n = write(STDERR_FILENO, bytes, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            mf_file_wait(STDERR_FILENO, POLLOUT);
            continue;
        }
        if (n <= 0) return;
        bytes += n;
        len -= (size_t)n;
    }
}

void mf_log(mf_log_level level, const char *format, ...) {
    static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};
    if (!mf_log_enabled(level)) return;
    int saved = errno;
    char small[1024], *line = small;
    size_t start = strlen(prefixes[level]), size = sizeof small;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small + start, size - start, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n, need = start + len + 2;
    if (need > size) {
        char *large = malloc(need);
        if (large) {
            line = large;
            size = need;
            va_start(args, format);
            vsnprintf(line + start, size - start, format, args);
            va_end(args);
        } else {
            len = size - start - 2; // memory is out: the line is cut
        }
    }
    memcpy(line, prefixes[level], start);
    len = start + mf_utf8_clean(line + start, len);
    if (!give_to_sink(level, line + start)) {
        line[len++] = '\n';
        write_all(line, len);
    }
    if (line != small) free(line);
    errno = saved;
}
