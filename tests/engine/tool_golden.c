// The golden hashes of tests/fixtures on every kernel row that this processor can run: what test_invariance checks too, but with no
// more than libc, for processors that are emulated.
//
//     golden [--row NAME] [--model NAME] [--cells TYPE] [--threads N] FIXTURES
//
// Prints a line for each hash. The exit status is 1 when one is not the golden one, 2 for wrong arguments.
#include "engine/golden.h"

static int usage(void) {
    fputs("usage: golden [--row NAME] [--model NAME] [--cells TYPE] [--threads N] FIXTURES\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    golden_options o = {.n_threads = 2, .report = stdout};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--row") == 0 && i + 1 < argc) {
            o.row = argv[++i];
        } else if (strcmp(argv[i], "--model") == 0 && i + 1 < argc) {
            o.model = argv[++i];
        } else if (strcmp(argv[i], "--cells") == 0 && i + 1 < argc) {
            o.cells = argv[++i];
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            o.n_threads = atoi(argv[++i]);
        } else if (argv[i][0] != '-' && !o.fixtures) {
            o.fixtures = argv[i];
        } else {
            return usage();
        }
    }
    mf_error err = {0};
    if (!o.fixtures || o.n_threads < 1) return usage();
    if (o.row && !mf_kernels_choose(o.row, &err)) {
        fprintf(stderr, "golden: %s\n", err.text);
        return 2;
    }
    const int n = golden_check(&o, &err);
    if (n < 0) {
        fprintf(stderr, "golden: %s\n", err.text);
        return 1;
    }
    if (n == 0) {
        fputs("golden: no such model or cell type\n", stderr);
        return 2;
    }
    printf("%d golden hashes\n", n);
    return 0;
}
