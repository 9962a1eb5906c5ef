// Prints docs/support.md.
#include <stdio.h>
#include <stdlib.h>

#include "backend/support_table.h"

int main(void) {
    mf_buf page = {0};
    mf_error err = {0};
    if (!support_page("scalar", &page, &err)) {
        fprintf(stderr, "support_table: %s\n", err.text);
        return 1;
    }
    bool ok = fwrite(page.data, 1, page.len, stdout) == page.len && fflush(stdout) == 0;
    free(page.data);
    return ok ? 0 : 1;
}
