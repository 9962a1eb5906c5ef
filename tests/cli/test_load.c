// What flags make of the engine's parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/load.h"

static void cache_types(void **state) {
    (void)state;
    mf_options o;
    mf_engine_params params;
    mf_error err = {0};
    mf_options_init(&o);
    assert_true(mf_engine_params_from(&o, &params, &err));
    assert_int_equal(params.kv_type, MF_TYPE_F16);
    assert_int_equal(params.fuse, MF_FUSE_ALL);
    o.cache_type_k = "f32";
    o.no_fuse = MF_FUSE_QKV;
    assert_true(mf_engine_params_from(&o, &params, &err));
    assert_int_equal(params.kv_type, MF_TYPE_F32);
    assert_int_equal(params.fuse, MF_FUSE_ALL & ~MF_FUSE_QKV);
    o.cache_type_v = "f16";
    assert_false(mf_engine_params_from(&o, &params, &err));
    assert_non_null(strstr(err.text, "f32 and f16 are both given"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cache_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
