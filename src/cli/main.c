#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/commands.h"

// Standard input, output and error where they were closed: the next file that is opened would take the number, and what is printed would
// go into it. They are opened the wrong way round, so that reading or writing them is an error, as on a closed one.
static bool fill_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    return true;
}

int main(int argc, char **argv) {
    if (fill_standard_descriptors()) return mf_cli_main(argc, argv);
    mf_log(MF_LOG_ERROR, "can't open '/dev/null' in the place of a closed descriptor: %s", strerror(errno));
    return MF_EXIT_REFUSED;
}
