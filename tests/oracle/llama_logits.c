/* llama.cpp's logits of given ids, for kl.py: llama_logits MODEL IDS_FILE N_CTX OUT.f32 [THREADS]
 *
 * Evaluates the ids in chunks of N_CTX, each from an empty context with llama.cpp's own defaults, and writes float32 logits
 * of every row in order. Same usage and output as minfer's dump_logits. kl.py compiles it against a built llama.cpp. */
#include "llama.h"

#include <stdio.h>
#include <stdlib.h>

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

static void fail(const char *what, const char *value) {
    fprintf(stderr, "llama_logits: %s %s\n", what, value);
    exit(1);
}

static llama_token *read_ids(const char *path, size_t *n_ids) {
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        fail("cannot open", path);
    }
    size_t n = 0, room = 4096;
    llama_token *ids = malloc(room * sizeof(*ids));
    while (ids != NULL && fscanf(f, "%d", &ids[n]) == 1) {
        if (++n == room) {
            room *= 2;
            ids = realloc(ids, room * sizeof(*ids));
        }
    }
    fclose(f);
    if (ids == NULL || n == 0) {
        fail("no ids in", path);
    }
    *n_ids = n;
    return ids;
}

static void write_chunk(struct llama_context *ctx, llama_token *ids, int n, size_t n_vocab, FILE *out) {
    struct llama_batch batch = llama_batch_init(n, 0, 1);
    for (int i = 0; i < n; i++) {
        batch.token[i] = ids[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    batch.n_tokens = n;
    llama_memory_clear(llama_get_memory(ctx), true);
    if (llama_decode(ctx, batch) != 0) {
        fail("cannot evaluate", "a chunk");
    }
    size_t want = (size_t)n * n_vocab;
    if (fwrite(llama_get_logits(ctx), sizeof(float), want, out) != want) {
        fail("cannot write", "logits");
    }
    llama_batch_free(batch);
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: llama_logits MODEL IDS_FILE N_CTX OUT.f32 [THREADS]\n");
        return 2;
    }
    int n_ctx = atoi(argv[3]);
    size_t n_ids;
    llama_token *ids = read_ids(argv[2], &n_ids);
    if (n_ctx < 1) {
        fail("N_CTX must be positive, not", argv[3]);
    }
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == NULL) {
        fail("cannot load", argv[1]);
    }
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)n_ctx;
    params.n_batch = (uint32_t)n_ctx;
    params.n_threads = argc == 6 ? atoi(argv[5]) : 1;
    params.n_threads_batch = params.n_threads;
    struct llama_context *ctx = llama_init_from_model(model, params);
    FILE *out = fopen(argv[4], "wb");
    if (ctx == NULL || out == NULL) {
        fail("cannot open a context, or", argv[4]);
    }
    size_t n_vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (size_t i = 0; i < n_ids; i += (size_t)n_ctx) {
        size_t left = n_ids - i;
        write_chunk(ctx, ids + i, left < (size_t)n_ctx ? (int)left : n_ctx, n_vocab, out);
    }
    int rc = fclose(out) == 0 ? 0 : 1;
    llama_free(ctx);
    llama_model_free(model);
    free(ids);
    return rc;
}
