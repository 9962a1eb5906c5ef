// dump_logits MODEL IDS N_CTX OUT [ROW] [CELLS]: evaluates token ids (decimal numbers in a file) in chunks of N_CTX, each from an empty
// context, and writes the logits of every row as raw float32. ROW: a kernel row; CELLS: f32 or f16. For the oracles.
#include <stdio.h>
#include <string.h>

#include "engine/fixture.h"

#define MOST_IDS (1 << 20)

typedef struct sink {
    FILE *out;
    bool failed;
} sink;

static void write_row(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    (void)position;
    sink *s = arg;
    if (fwrite(logits, sizeof *logits, (size_t)n_vocab, s->out) != (size_t)n_vocab) s->failed = true;
}

static bool evaluate(mf_engine *e, const int32_t *ids, int32_t n, sink *s, mf_error *err) {
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    p.logits_from = 0, p.on_logits = write_row, p.arg = s;
    mf_sequence *seq = mf_sequence_new(e, &p, err);
    bool ok = seq && mf_sequence_append(seq, ids, (size_t)n, err);
    while (ok && !mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        ok = mf_engine_step(e, &events, &n_events, err);
        for (size_t i = 0; ok && i < n_events; i++)
            if (events[i].finish == MF_FINISH_ERROR) *err = events[i].error, ok = false;
    }
    mf_sequence_free(seq);
    return ok;
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "usage: dump_logits MODEL IDS N_CTX OUT [ROW] [CELLS]\n"), 2;
    static int32_t ids[MOST_IDS];
    mf_error err = {0};
    fixture f;
    int32_t n = fixture_ids(argv[2], ids, MOST_IDS), n_ctx = atoi(argv[3]);
    sink s = {.out = fopen(argv[4], "wb")};
    if (n < 1 || n_ctx < 1 || !s.out) return fprintf(stderr, "dump_logits: bad arguments\n"), 2;
    if (!fixture_open(&f, argv[1], argc > 5 ? argv[5] : NULL, 0, &err))
        return fprintf(stderr, "dump_logits: %s\n", err.text), 1;
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = n_ctx, p.n_batch = p.max_outs = n_ctx < 256 ? n_ctx : 256;
    if (argc > 6 && strcmp(argv[6], "f32") == 0) p.kv_type = MF_TYPE_F32;
    mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
    bool ok = e != NULL;
    for (int32_t at = 0; ok && at < n; at += n_ctx) ok = evaluate(e, ids + at, n - at < n_ctx ? n - at : n_ctx, &s, &err);
    if (!ok) fprintf(stderr, "dump_logits: %s\n", err.text);
    mf_engine_free(e);
    fixture_close(&f);
    if (fclose(s.out) != 0 || s.failed) return fprintf(stderr, "dump_logits: writing failed\n"), 1;
    return ok ? 0 : 1;
}
