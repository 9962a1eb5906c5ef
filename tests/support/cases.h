// Cases that can't run everywhere. A program with such cases has a CTest entry for each (tests/CMakeLists.txt names them), which gives
// the case's name as the argument; a case that was skipped ends its program with 77, so that CTest shows it as skipped, not as passed.
#ifndef MF_TESTS_CASES_H
#define MF_TESTS_CASES_H

#include <stdbool.h>

static bool cases_skipped;

// Ends a case, saying why it can't run here.
#define skip_because(...)                       \
    do {                                        \
        print_message("skipped: " __VA_ARGS__); \
        print_message("\n");                    \
        cases_skipped = true;                   \
        skip();                                 \
    } while (0)

// main's result: of all cases, or of those whose names match the argument.
#define run_cases(argc, argv, tests, setup, teardown) \
    ((argc) > 1 ? cmocka_set_test_filter((argv)[1]) : (void)0, cases_result(cmocka_run_group_tests(tests, setup, teardown)))

static inline int cases_result(int failed) { return failed ? failed : cases_skipped ? 77 : 0; }

#endif
