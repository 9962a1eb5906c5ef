// docs/support.md is what the backends say, and every row of the CPU's kernel table says the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "backend/support_table.h"
#include "base/file.h"

static void the_committed_page_is_what_backends_say(void **state) {
    (void)state;
    mf_buf page = {0}, committed = {0};
    mf_error err = {0};
    if (!support_page("scalar", &page, &err) ||
        !mf_file_read(MF_FIXTURES "/../../docs/support.md", 1 << 20, &committed, &err))
        fail_msg("%s", err.text);
    if (page.len != committed.len || memcmp(page.data, committed.data, page.len) != 0)
        fail_msg("docs/support.md is not what the backends say; make it again with tests/support_table of the build");
    free(page.data);
    free(committed.data);
}

static void kernel_rows_support_the_same(void **state) {
    (void)state;
    mf_buf scalar = {0};
    mf_error err = {0};
    assert_true(support_page("scalar", &scalar, &err));
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) {
            print_message("SKIP cpu/%s: this processor lacks its instructions\n", (*k)->name);
            continue;
        }
        mf_buf page = {0};
        if (!support_page((*k)->name, &page, &err)) fail_msg("%s", err.text);
        if (page.len != scalar.len || memcmp(page.data, scalar.data, page.len) != 0)
            fail_msg("row '%s' does not support what the scalar row supports", (*k)->name);
        free(page.data);
    }
    free(scalar.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_committed_page_is_what_backends_say),
        cmocka_unit_test(kernel_rows_support_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
