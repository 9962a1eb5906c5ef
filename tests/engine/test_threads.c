// One small run with more workers than processors: prefill in chunks, split attention, several sequences. The build with TSan runs it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fixture.h"

static int32_t run(const char *path, int n_threads, int32_t tokens[3][12]) {
    fixture f;
    mf_error err = {0};
    if (!fixture_open(&f, path, NULL, n_threads, &err)) fail_msg("%s", err.text);
    int32_t ids[400], n = fixture_ids(MF_FIXTURES "/tiny/long.ids.txt", ids, 400), total = 0;
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 1024, p.n_batch = 200, p.max_seqs = 3;
    mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
    mf_sampler_params sampler;
    mf_sampler_params_init(&sampler);
    mf_sequence_params sp;
    mf_sequence_params_init(&sp);
    sp.sampler = &sampler, sp.max_tokens = 12;
    mf_sequence *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = mf_sequence_new(e, &sp, &err);
        assert_true(s[i] && mf_sequence_append(s[i], ids, (size_t)(n / (i + 1)), &err));
    }
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        assert_true(mf_engine_step(e, &events, &n_events, &err));
    }
    for (int i = 0; i < 3; i++) {
        total += mf_sequence_n_tokens(s[i]) - n / (i + 1);
        memcpy(tokens[i], mf_sequence_tokens(s[i]) + n / (i + 1), sizeof tokens[i]);
        mf_sequence_free(s[i]);
    }
    mf_engine_free(e);
    fixture_close(&f);
    return total;
}

static void workers_agree(void **state) {
    (void)state;
    static const char *const models[] = {MF_FIXTURES "/tiny/llama-mix.gguf", MF_FIXTURES "/tiny/qwen3-f16.gguf"};
    for (int m = 0; m < 2; m++) {
        int32_t one[3][12], four[3][12];
        assert_int_equal(run(models[m], 1, one), 36);
        assert_int_equal(run(models[m], 4, four), 36);
        assert_memory_equal(one, four, sizeof one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(workers_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
