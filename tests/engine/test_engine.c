// The engine's contract: what it refuses, when sequences end, what truncation forgets, what a full cache does.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/device.h"
#include "base/half.h"
#include "engine/greedy.h"
#include "quant/blocks.h"

static void parameters_out_of_range_are_refused(void **state) {
    (void)state;
    static const struct {
        int32_t n_ctx, n_batch, max_seqs;
        const char *sentence;
    } cases[] = {
        {0, 1, 1, "the context is 0"},
        {1025, 1, 1, "the context is 1025; it must be 1 to 1024"},
        {64, 0, 1, "the batch size is 0"},
        {64, 9000, 1, "the batch size is 9000"},
        {64, 1, 0, "the number of sequences is 0"},
        {64, 1, 2000, "the number of sequences is 2000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_engine_params p;
        mf_error err = {0};
        mf_engine_params_init(&p);
        p.n_ctx = cases[i].n_ctx, p.n_batch = cases[i].n_batch, p.max_seqs = cases[i].max_seqs;
        assert_null(mf_engine_new(model.model, &model.devices, &p, &err));
        assert_non_null(strstr(err.text, cases[i].sentence));
    }
    mf_engine_params p;
    mf_error err = {0};
    mf_engine_params_init(&p);
    p.n_ctx = 64, p.kv_type = MF_TYPE_Q4_0;
    assert_null(mf_engine_new(model.model, &model.devices, &p, &err));
    assert_non_null(strstr(err.text, "Q4_0"));
}

static void bad_tokens_and_long_prompts_are_refused(void **state) {
    (void)state;
    mf_engine *e = engine(64, 16, 1);
    mf_sequence *s = sequence(e, 1);
    mf_error err = {0};
    int32_t ids[100] = {0};
    assert_false(mf_sequence_append(s, (int32_t[]){1, 288}, 2, &err));
    assert_non_null(strstr(err.text, "token 1 is 288; the vocabulary has 288"));
    assert_false(mf_sequence_append(s, (int32_t[]){-1}, 1, &err));
    assert_false(mf_sequence_append(s, ids, 65, &err));
    assert_non_null(strstr(err.text, "65 tokens do not fit into a context of 64"));
    assert_true(mf_sequence_append(s, ids, 60, &err));
    assert_false(mf_sequence_append(s, ids, 5, &err));
    assert_int_equal(mf_sequence_n_tokens(s), 60);
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    assert_null(mf_sequence_new(e, &p, &err));
    assert_non_null(strstr(err.text, "all 1 sequences are in use"));
    mf_sequence_free(s);
    mf_engine_free(e);
}

static void generation_ends_for_a_reason(void **state) {
    (void)state;
    mf_error err = {0};
    int32_t ids[16] = {40, 41, 42, 43, 44};
    mf_engine *e = engine(64, 16, 1);
    mf_sequence *s = sequence(e, 5);
    assert_true(mf_sequence_append(s, ids, 5, &err));
    assert_int_equal(drain(e, NULL), MF_FINISH_LENGTH);
    assert_int_equal(mf_sequence_n_tokens(s), 10);
    int32_t third = mf_sequence_tokens(s)[7], first = mf_sequence_tokens(s)[5], second = mf_sequence_tokens(s)[6];
    mf_sequence_free(s);

    mf_sequence_params p; // the third token it says is a stop
    mf_sequence_params_init(&p);
    p.sampler = &greedy, p.stop = &third, p.n_stop = 1;
    s = mf_sequence_new(e, &p, &err);
    assert_true(mf_sequence_append(s, ids, 5, &err));
    assert_int_equal(drain(e, NULL), MF_FINISH_STOP);
    assert_int_equal(mf_sequence_n_tokens(s), third == first ? 6 : third == second ? 7 : 8);
    mf_sequence_free(s);

    s = sequence(e, -1); // the context is the bound: 64 cells hold 64 evaluated tokens, and one more is said
    assert_true(mf_sequence_append(s, ids, 5, &err));
    assert_int_equal(drain(e, NULL), MF_FINISH_LENGTH);
    assert_int_equal(mf_sequence_n_tokens(s), 65);
    mf_sequence_free(s);
    mf_engine_free(e);
}

// Going back to a prefix and on again gives what a fresh run gives.
static void truncation_forgets(void **state) {
    (void)state;
    mf_error err = {0};
    int32_t ids[80];
    for (int i = 0; i < 80; i++) ids[i] = 30 + 2 * i;
    mf_engine *e = engine(256, 32, 2);
    mf_sequence *s = sequence(e, 10), *fresh = sequence(e, 10);
    assert_true(mf_sequence_append(s, ids, 70, &err));
    drain(e, NULL);
    mf_sequence_truncate(s, 66);
    assert_int_equal(mf_sequence_n_tokens(s), 66);
    assert_true(mf_sequence_append(s, ids + 66, 14, &err));
    assert_true(mf_sequence_append(fresh, ids, 80, &err));
    drain(e, NULL);
    assert_int_equal(mf_sequence_n_tokens(s), 90);
    assert_memory_equal(mf_sequence_tokens(s), mf_sequence_tokens(fresh), 90 * sizeof(int32_t));
    mf_sequence_free(s);
    mf_sequence_free(fresh);
    mf_engine_free(e);
}

// Which rows were reported, and a sum over each one's bytes.
typedef struct reported {
    int32_t n, first;
    uint64_t sum[80];
} reported;

static void note_row(void *arg, mf_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)s;
    reported *r = arg;
    if (r->n++ == 0) r->first = position;
    assert_int_equal(position, r->first + r->n - 1);
    for (int32_t i = 0; i < n_vocab; i++) r->sum[position] = r->sum[position] * 31 + mf_f32_bits(logits[i]);
}

// The same logits from any row on, with fewer outputs than a batch has rows.
static void logits_are_reported_from_a_row_on(void **state) {
    (void)state;
    static const int32_t from[] = {0, 1, 33, 70, 79, 80, INT32_MAX, -1};
    reported all;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        mf_error err = {0};
        mf_engine_params p;
        mf_engine_params_init(&p);
        p.n_ctx = 256, p.n_batch = 32, p.max_outs = 5;
        mf_engine *e = mf_engine_new(model.model, &model.devices, &p, &err);
        reported r = {0};
        mf_sequence_params q;
        mf_sequence_params_init(&q);
        q.logits_from = from[i], q.on_logits = note_row, q.arg = &r;
        mf_sequence *s = e ? mf_sequence_new(e, &q, &err) : NULL;
        int32_t ids[80], first = from[i] >= 0 && from[i] < 79 ? from[i] : 79;
        for (int32_t k = 0; k < 80; k++) ids[k] = 30 + 2 * k;
        if (!s || !mf_sequence_append(s, ids, 80, &err)) fail_msg("%s", err.text);
        drain(e, NULL);
        assert_int_equal(r.first, first);
        assert_int_equal(r.n, 80 - first);
        if (i == 0) all = r;
        assert_memory_equal(r.sum + first, all.sum + first, (size_t)r.n * sizeof r.sum[0]);
        mf_sequence_free(s);
        mf_engine_free(e);
    }
}

// A model whose weights give infinities ends the sequence with the layer and the operation, and not the others' engine.
static void non_finite_activations_name_the_place(void **state) {
    (void)state;
    static const char *const files[] = {MF_FIXTURES "/tiny/llama-mix.gguf", MF_FIXTURES "/tiny/llama-f32.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        mf_error err = {0};
        fixture f;
        if (!fixture_open(&f, files[i], NULL, 2, &err)) fail_msg("%s", err.text);
        mf_engine_params p;
        mf_engine_params_init(&p);
        p.n_ctx = 128;
        mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
        assert_non_null(e);
        float *norm = f.model->layers[1].ffn_norm->prepared, saved = norm[5];
        norm[5] = __builtin_inff();
        mf_sequence *s = sequence(e, 4);
        assert_true(mf_sequence_append(s, (int32_t[]){50, 51, 52}, 3, &err));
        mf_error why = {0};
        assert_int_equal(drain(e, &why), MF_FINISH_ERROR);
        assert_int_equal(why.code, MF_ERR_NUMERIC);
        assert_non_null(strstr(why.text, "blk.1.ffn_norm"));
        assert_int_equal(mf_sequence_n_tokens(s), 2); // without the row that failed
        norm[5] = saved;
        assert_true(mf_sequence_append(s, (int32_t[]){52}, 1, &err));
        assert_int_equal(drain(e, NULL), MF_FINISH_LENGTH);
        mf_sequence_free(s);
        mf_engine_free(e);
        fixture_close(&f);
    }
}

// A model in which the weights of one token's embedding are not finite.
typedef struct poisoned {
    fixture f;
    mf_weight *whole, bad;
    cpu_matrix matrix;
    uint8_t *data;
} poisoned;

static void poison(poisoned *p, size_t token) {
    mf_error err = {0};
    if (!fixture_open(&p->f, MF_FIXTURES "/tiny/llama-mix.gguf", "scalar", 1, &err)) fail_msg("%s", err.text);
    p->whole = p->f.model->token_embd;
    p->matrix = *(cpu_matrix *)p->whole->prepared; // in the file's layout: that row of the table computes so
    assert_int_equal(p->matrix.matrix.type, MF_TYPE_Q6_K);
    p->data = malloc(p->whole->file_bytes);
    assert_non_null(p->data);
    memcpy(p->data, p->whole->file, p->whole->file_bytes);
    mf_block_q6_k *block = (mf_block_q6_k *)(p->data + token * p->matrix.matrix.stride);
    block->d = 0x7e00;
    p->matrix.matrix.data = p->data;
    p->bad = *p->whole, p->bad.prepared = &p->matrix;
    p->f.model->token_embd = &p->bad; // the output, which is tied to it, stays whole
}

static void poison_close(poisoned *p) {
    p->f.model->token_embd = p->whole;
    fixture_close(&p->f);
    free(p->data);
}

// A row that is not finite is cut off with what is behind it, wherever it stands in a batch. The sequence goes on as one that never met it.
static void a_non_finite_row_is_cut_off(void **state) {
    (void)state;
    enum {
        BAD = 77
    };
    static const int32_t prompt[] = {50, 51, 52, 53, 54, 55, BAD, 56, 57}, instead[] = {60, 61};
    mf_error err = {0};
    poisoned m;
    poison(&m, BAD);
    for (int32_t batch = 1; batch < 11; batch += 3) {
        mf_engine_params p;
        mf_engine_params_init(&p);
        p.n_ctx = 128, p.n_batch = batch, p.max_seqs = 2;
        mf_engine *e = mf_engine_new(m.f.model, &m.f.devices, &p, &err);
        assert_non_null(e);
        mf_sequence *s = sequence(e, 5), *other = sequence(e, 5);
        mf_error why = {0};
        for (int round = 0; round < 2; round++) { // it may happen again
            assert_true(mf_sequence_append(s, prompt + 3 * round, 9 - (size_t)(3 * round), &err));
            if (round == 0) assert_true(mf_sequence_append(other, prompt, 6, &err));
            drain(e, &why);
            assert_non_null(strstr(why.text, "token 6: an activation is not finite"));
            assert_int_equal(mf_sequence_n_tokens(s), 6);
            assert_memory_equal(mf_sequence_tokens(s), prompt, 6 * sizeof *prompt);
            assert_int_equal(mf_sequence_n_tokens(other), 6 + 5);
            assert_true(mf_sequence_idle(s));
            if (round == 0) mf_sequence_truncate(s, 3);
        }
        mf_sequence_truncate(other, 6);
        assert_true(mf_sequence_append(s, instead, 2, &err) && mf_sequence_append(other, instead, 2, &err));
        assert_int_equal(drain(e, NULL), MF_FINISH_LENGTH);
        assert_int_equal(mf_sequence_n_tokens(s), 6 + 2 + 5);
        assert_memory_equal(mf_sequence_tokens(s), mf_sequence_tokens(other), 13 * sizeof *prompt);
        mf_sequence_free(s);
        mf_sequence_free(other);
        mf_engine_free(e);
    }
    poison_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_out_of_range_are_refused), cmocka_unit_test(bad_tokens_and_long_prompts_are_refused),
        cmocka_unit_test(generation_ends_for_a_reason),        cmocka_unit_test(truncation_forgets),
        cmocka_unit_test(logits_are_reported_from_a_row_on),   cmocka_unit_test(non_finite_activations_name_the_place),
        cmocka_unit_test(a_non_finite_row_is_cut_off),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
