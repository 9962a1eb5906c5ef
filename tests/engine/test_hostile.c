// Mutated models by the thousand, loaded whole and asked for a token: each is refused with a sentence or runs; never a crash, a hang or
// memory without bound. Sanitizers watch, with a cap on memory. The seeds are fixed, so a failure comes back.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "engine/fixture.h"
#include "support/mutate.h"
#include "support/tinymodel.h"

enum {
    N_MUTANTS = 1200, // of each model
    ROOM = 64         // bytes that a mutant may be longer
};

// A key's value, a tensor's contents or any byte of the head. `file` is the model without changes.
static size_t mutate_model(uint8_t *data, size_t size, const uint8_t *start, const mf_gguf *file, uint64_t *random) {
    const mf_gguf_tensor *t = mf_gguf_tensor_at(file, mutate_draw(random, (uint32_t)mf_gguf_n_tensors(file)));
    const mf_gguf_value *v = mf_gguf_value_at(file, mutate_draw(random, (uint32_t)mf_gguf_n_values(file)));
    const uint64_t n = mutate_number(random);
    switch (mutate_draw(random, 4)) {
    case 0: memcpy(data + (v->data - start), &n, 4); return size;
    case 1: { // numbers that are not finite, which are refused, or large ones, with which activations overflow
        const int byte = mutate_draw(random, 4) == 0 ? 0xff : 0x77;
        for (uint32_t i = 1 + mutate_draw(random, 40); i > 0; i--)
            memset(data + (t->data - start) + mutate_draw(random, (uint32_t)t->size - 2), byte, 2);
        return size;
    }
    default: return mutate_bytes(data, size, (size_t)(mf_gguf_tensor_at(file, 0)->data - start), random);
    }
}

// A token after a prompt of three. True when the model ran, also where its numbers turned out not finite.
static bool generate(fixture *f, mf_error *err) {
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = f->model->hparams.n_ctx_train < 16 ? f->model->hparams.n_ctx_train : 16;
    p.n_batch = 4;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, err);
    mf_sampler_params greedy;
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    mf_sequence_params sp;
    mf_sequence_params_init(&sp);
    sp.sampler = &greedy, sp.max_tokens = 1;
    mf_sequence *s = e ? mf_sequence_new(e, &sp, err) : NULL;
    bool ok = s && mf_sequence_append(s, (const int32_t[]){0, 1, 2}, 3, err);
    while (ok && !mf_engine_idle(e)) {
        const mf_event *events;
        size_t n;
        ok = mf_engine_step(e, &events, &n, err);
    }
    mf_sequence_free(s);
    mf_engine_free(e);
    return ok;
}

// Loads an own allocation of the exact size, so that a byte behind it is seen.
static bool try(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    mf_error err = {0};
    fixture f;
    bool ran = fixture_of(&f, mf_gguf_open_memory(copy, size, &err), NULL, 1, &err);
    if (ran) {
        ran = generate(&f, &err);
        fixture_close(&f);
    }
    if (!ran && (err.code == MF_OK || err.text[0] == 0 || err.code == MF_ERR_INTERNAL))
        fail_msg("refused with code %d: '%s'", err.code, err.text);
    free(copy);
    return ran;
}

static void mutants(const char *arch, const mf_type *types, size_t n_types, bool tied, uint64_t seed) {
    const tinymodel m = {arch, types, n_types, MF_TYPE_Q4_0, MF_TYPE_Q6_K, tied, MF_TYPE_F32, seed};
    size_t size;
    uint8_t *data = tinymodel_make(&m, &size), *copy = malloc(size + ROOM);
    assert_non_null(copy);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    assert_true(try(data, size));
    int ran = 0;
    for (int i = 0; i < N_MUTANTS; i++) {
        memcpy(copy, data, size);
        size_t len = size;
        for (uint32_t k = 1 + mutate_draw(&seed, 2); k > 0; k--) len = mutate_model(copy, len, data, file, &seed);
        ran += try(copy, len);
    }
    print_message("%s: %d of %d mutants ran\n", arch, ran, N_MUTANTS);
    assert_true(ran > N_MUTANTS / 10 && ran < N_MUTANTS);
    mf_gguf_close(file);
    free(copy);
    free(data);
}

static void llama(void **state) { (void)state, mutants("llama", tinymodel_types, TINYMODEL_N_TYPES, false, 101); }
static void qwen2(void **state) { (void)state, mutants("qwen2", tinymodel_types + 8, 5, true, 102); }
static void qwen3(void **state) { (void)state, mutants("qwen3", tinymodel_types + 3, 4, true, 103); }

int main(void) {
    mutate_cap_memory();
    mf_log_set_level(MF_LOG_ERROR); // unknown keys are named by the thousand
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama), cmocka_unit_test(qwen2), cmocka_unit_test(qwen3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
