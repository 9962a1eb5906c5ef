// A folder of a test's own.
#ifndef SUPPORT_FOLDER_H
#define SUPPORT_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Makes a new folder for temporary files, with `name` in its name, and puts its path into out. False when it can't be made.
static inline bool folder_make(char out[64], const char *name) {
    char unique[7] = {0};
    memset(unique, 'X', 6); // what mkdtemp replaces
    int n = snprintf(out, 64, "%s/minfer-%s-%s", P_tmpdir, name, unique);
    return n > 0 && n < 64 && mkdtemp(out) != NULL;
}

#endif
