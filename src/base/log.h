// The log: lines on standard error. Everything that is not a result goes there.
#ifndef MF_BASE_LOG_H
#define MF_BASE_LOG_H

#include <stdbool.h>

typedef enum mf_log_level {
    MF_LOG_ERROR,
    MF_LOG_WARNING,
    MF_LOG_NOTICE,
    MF_LOG_DEBUG
} mf_log_level;

// Lines above this level are dropped (default: MF_LOG_NOTICE).
void mf_log_set_level(mf_log_level level);
bool mf_log_enabled(mf_log_level level);

// Where lines go instead of standard error: called with the line alone (no newline, no "error: "), from any thread, one call at a time. It must not
// log. NULL: standard error.
typedef void mf_log_fn(void *arg, int level, const char *line);
void mf_log_set_sink(mf_log_fn *fn, void *arg);

// One line; a newline is added. Safe from several threads (a line is one write).
void mf_log(mf_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
