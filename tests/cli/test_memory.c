// The memory plan's arithmetic and its refusal.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/load.h"

static void largest_context(void **state) {
    (void)state;
    // 16 blocks of 64 cells take 16000 bytes: 1000 a block.
    mf_memory_plan plan = {.weights = 5000, .kv = 16000, .activations = 500, .n_ctx = 1024};
    assert_int_equal(mf_memory_plan_total(&plan), 21500);
    assert_int_equal(mf_memory_largest_ctx(&plan, 5500 + 7000, 100000), 7 * 64);
    assert_int_equal(mf_memory_largest_ctx(&plan, 5500 + 7999, 100000), 7 * 64);
    assert_int_equal(mf_memory_largest_ctx(&plan, 5500 + 999, 100000), 0);
    assert_int_equal(mf_memory_largest_ctx(&plan, 100, 100000), 0);
    assert_int_equal(mf_memory_largest_ctx(&plan, UINT64_MAX, 8192), 8192);
    mf_memory_plan odd = {.weights = 0, .kv = 2000, .activations = 0, .n_ctx = 65}; // two blocks
    assert_int_equal(mf_memory_largest_ctx(&odd, 3000, 100000), 3 * 64);
}

static void refusal(void **state) {
    (void)state;
    mf_memory_plan plan = {.weights = 5000000000, .kv = 16000000000, .activations = 500000000, .n_ctx = 1024};
    mf_error err = {0};
    assert_true(mf_memory_check(&plan, 21500000000, 8192, &err));
    assert_false(mf_memory_check(&plan, 12500000000, 8192, &err));
    assert_int_equal(err.code, MF_ERR_MEMORY);
    assert_string_equal(
        err.text, "this needs 22 GB (weights 5.0 GB, KV cache 16 GB for --ctx 1024, activations 500 MB) and 12 GB are free; "
                  "the largest --ctx that fits is 448");
    assert_false(mf_memory_check(&plan, 4000000000, 8192, &err));
    assert_non_null(strstr(err.text, "no --ctx would fit"));
}

static void bytes(void **state) {
    (void)state;
    const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {999, "999 bytes"},
                 {1000, "1.0 kB"},
                 {9940, "9.9 kB"},
                 {9950, "10 kB"},
                 {999400, "999 kB"},
                 {999600, "1.0 MB"},
                 {98362432, "98 MB"},
                 {1500000000, "1.5 GB"},
                 {2000000000000, "2.0 TB"},
                 {5000000000000000, "5000 TB"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(mf_bytes_text(cases[i].bytes, text), cases[i].text);
}

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

static void remote_names(void **state) {
    (void)state;
    const char *names[] = {"hf:owner/repo", "ollama:llama3", "https://example.com/x.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mf_loaded l = {0};
        mf_error err = {0};
        assert_false(mf_load_file(&l, names[i], &err));
        assert_int_equal(err.code, MF_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, names[i]));
        mf_unload(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(largest_context), cmocka_unit_test(refusal), cmocka_unit_test(bytes),
                                       cmocka_unit_test(cache_types), cmocka_unit_test(remote_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
