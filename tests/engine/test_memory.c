// The memory plan's arithmetic, its refusal and the context that fits.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/promise.h"
#include "engine/fixture.h"
#include "engine/memory.h"

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
    assert_true(mf_memory_check(&plan, 22200000000, 8192, &err));
    assert_false(mf_memory_check(&plan, 12500000000, 8192, &err));
    assert_int_equal(err.code, MF_ERR_MEMORY);
    assert_string_equal(err.text, "this needs 22 GB (weights 5.0 GB, KV cache 16 GB for a context of 1024, activations 500 "
                                  "MB), and a plan may take 12 "
                                  "GB of 12 GB that are free; the largest context (--ctx) that fits is 384");
    // What the advice says is granted.
    plan.n_ctx = 384;
    plan.kv = 6000000000;
    assert_true(mf_memory_check(&plan, 12500000000, 8192, &err));
    plan.n_ctx = 1024;
    plan.kv = 16000000000;
    assert_false(mf_memory_check(&plan, 4000000000, 8192, &err));
    assert_non_null(strstr(err.text, "no context would fit"));
    // Not the last free byte.
    assert_false(mf_memory_check(&plan, 21500000000, 8192, &err));
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

static void auto_context(void **state) {
    (void)state;
    fixture f;
    mf_error err = {0};
    mf_engine_params p;
    mf_memory_plan plan;
    mf_engine_params_init(&p);
    p.max_seqs = 2;
    assert_true(fixture_open(&f, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 1, &err));
    assert_true(mf_memory_auto_ctx(f.model, &f.devices, &p, true, UINT64_MAX, &err));
    assert_int_equal(p.n_ctx, 2048); // the model's maximum for each
    assert_true(mf_memory_plan_make(f.model, &f.devices, &p, true, &plan, &err));
    assert_int_equal(plan.weights, 0);
    uint64_t half = (plan.activations + plan.kv / 2) / 15 * 16 + 1000;
    assert_true(mf_memory_auto_ctx(f.model, &f.devices, &p, true, half, &err));
    assert_true(p.n_ctx >= 1024 && p.n_ctx <= 1024 + MF_KV_BLOCK);
    assert_true(mf_memory_plan_make(f.model, &f.devices, &p, true, &plan, &err));
    assert_true(mf_memory_plan_total(&plan) <= half);
    assert_false(mf_memory_auto_ctx(f.model, &f.devices, &p, true, plan.activations / 2, &err));
    assert_int_equal(err.code, MF_ERR_MEMORY);
    assert_null(strstr(err.text, "weights"));
    fixture_close(&f);
}

// What engines were granted counts before they use it, and the samplers of all sequences are in the plan.
static void grants_count(void **state) {
    (void)state;
    fixture f;
    mf_error err = {0};
    assert_true(fixture_open(&f, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 1, &err));
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.max_seqs = 64, p.n_ctx = 64 * 1024;
    mf_engine *engines[3];
    const uint64_t before = mf_promise_untouched();
    for (uint64_t i = 0; i < 3; i++) {
        assert_non_null(engines[i] = mf_engine_new(f.model, &f.devices, &p, &err));
        assert_true(mf_promise_untouched() >= before + (i + 1) * mf_engine_memory_of(engines[i]).kv);
    }
    p.populate = true; // then it is used from the beginning
    const uint64_t granted = mf_promise_untouched();
    mf_engine *used = mf_engine_new(f.model, &f.devices, &p, &err);
    assert_non_null(used);
    assert_true(mf_promise_untouched() < granted + mf_engine_memory_of(used).kv);
    mf_engine_free(used);
    mf_memory_plan one, many;
    assert_true(mf_memory_plan_make(f.model, &f.devices, &p, true, &many, &err));
    assert_int_equal(many.activations, mf_engine_memory_of(engines[0]).activations);
    const size_t each = mf_sampler_bytes(f.model->hparams.n_vocab);
    p.max_outs = 64, p.max_seqs = 32, p.n_ctx = 32 * 1024;
    assert_true(mf_memory_plan_make(f.model, &f.devices, &p, true, &one, &err));
    assert_true(many.activations - one.activations >= 32 * each);
    const uint64_t kv = mf_engine_memory_of(engines[0]).kv;
    for (int i = 0; i < 3; i++) mf_engine_free(engines[i]);
    assert_true(mf_promise_untouched() < before + kv);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(largest_context), cmocka_unit_test(refusal), cmocka_unit_test(bytes),
                                       cmocka_unit_test(auto_context), cmocka_unit_test(grants_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
