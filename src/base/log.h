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

// One line; a newline is added. Safe from several threads (a line is one write).
void mf_log(mf_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
