/* The first and only process of the emulated machine (run_avx512.sh), linked statically. Runs /program with the arguments in /args
 * (each ended by a NUL, the first is argv[0]), its output going to the second serial port, writes one line there on how it ended and
 * stops the emulator. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_ARGUMENTS      128
#define MAX_ARGUMENT_BYTES 65536

/* Bochs ends itself when this word is written to its port 0x8900. */
static void stop_machine(void) {
    if (iopl(3) == 0)
        for (const char *p = "Shutdown"; *p != '\0'; p++) outb((unsigned char)*p, 0x8900);
    for (;;) pause();
}

static void finish(const char *how, int value) {
    dprintf(STDOUT_FILENO, "\nemulated: %s %d\n", how, value);
    tcdrain(STDOUT_FILENO);
    stop_machine();
}

/* Bytes go out as they are: no CR before LF. */
static void make_raw(int fd) {
    struct termios mode;
    if (tcgetattr(fd, &mode) == 0) {
        cfmakeraw(&mode);
        cfsetspeed(&mode, B115200);
        tcsetattr(fd, TCSANOW, &mode);
    }
}

static char *read_arguments(size_t *length) {
    char *text = calloc(1, MAX_ARGUMENT_BYTES + 1);
    int fd = open("/args", O_RDONLY);
    ssize_t n = text != NULL && fd >= 0 ? read(fd, text, MAX_ARGUMENT_BYTES) : -1;
    *length = n > 0 ? (size_t)n : 0;
    return text;
}

int main(void) {
    mkdir("/dev", 0755);
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/tmp", 0755);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    int out = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
    if (out < 0) stop_machine();
    make_raw(out);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);

    size_t length;
    char *text = read_arguments(&length);
    char *arguments[MAX_ARGUMENTS + 1] = {NULL};
    int count = 0;
    for (size_t i = 0; i < length && count < MAX_ARGUMENTS; i += strlen(text + i) + 1) arguments[count++] = text + i;

    pid_t child = fork();
    if (child == 0) {
        char *environment[] = {"PATH=/", "HOME=/", "TMPDIR=/tmp", NULL};
        execve("/program", arguments, environment);
        dprintf(STDERR_FILENO, "cannot execute the program: %s\n", strerror(errno));
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) finish("not-started", errno);
    if (WIFSIGNALED(status)) finish("signal", WTERMSIG(status));
    finish("exit", WEXITSTATUS(status));
}
