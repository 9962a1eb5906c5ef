#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/terminal.h"

bool mf_output_write(mf_output *out, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len && !out->failed) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) { // a terminal or pipe that another program made non-blocking
            mf_file_wait(STDOUT_FILENO, POLLOUT);
            continue;
        }
        if (n < 0) {
            if (errno != EPIPE) mf_log(MF_LOG_ERROR, "can't write to standard output: %s", strerror(errno));
            out->failed = true;
            break;
        }
        at += n;
        len -= (size_t)n;
    }
    return !out->failed;
}

bool mf_output_buf(mf_output *out, const mf_buf *buf) {
    if (buf->failed) {
        mf_log(MF_LOG_ERROR, "out of memory for the output");
        out->failed = true;
    }
    return mf_output_write(out, buf->data, buf->len);
}
