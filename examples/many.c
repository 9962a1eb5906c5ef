// Four continuations of one text at the same time, each with a seed of its own: many MODEL.gguf TEXT
// Pieces are written as they come, each in a line with the number of its sequence.
#include <minfer.h>
#include <stdio.h>
#include <string.h>

enum {
    SEQUENCES = 4
};

typedef struct continuation {
    int number;
    int n_tokens;
} continuation;

static int fail(const minfer_error *error) {
    fprintf(stderr, "many: %s\n", error->text);
    return 1;
}

static int take(const minfer_event *event) {
    continuation *c = minfer_sequence_arg(event->sequence);
    if (event->finish == MINFER_FINISH_ERROR) return fail(event->error);
    c->n_tokens += event->token >= 0;
    if (event->text_len > 0) printf("%d: %s\n", c->number, event->text);
    if (event->finish != MINFER_FINISH_NONE) printf("%d: %d tokens\n", c->number, c->n_tokens);
    fflush(stdout);
    return 0;
}

// Gives every sequence the text: it is evaluated once where it is longer than a block, and shared.
static int start(minfer_engine *engine, const char *text, continuation *continuations) {
    minfer_error error;
    for (int i = 0; i < SEQUENCES; i++) {
        continuations[i] = (continuation){.number = i + 1};
        minfer_sampling sampling;
        minfer_sampling_init(&sampling, sizeof sampling);
        sampling.seed = (uint64_t)i;
        minfer_sequence_options options;
        minfer_sequence_options_init(&options, sizeof options);
        options.sampling = &sampling;
        options.max_tokens = 32;
        options.arg = &continuations[i];
        minfer_sequence *sequence = minfer_sequence_new(engine, &options, &error);
        if (!sequence || !minfer_append_text(sequence, text, strlen(text), MINFER_ENCODE_SPECIAL, &error))
            return fail(&error);
    }
    return 0;
}

static int run(minfer_engine *engine) {
    minfer_error error;
    minfer_event events[SEQUENCES];
    int code = 0;
    while (code == 0 && !minfer_idle(engine)) {
        size_t n;
        if (!minfer_step(engine, events, SEQUENCES, &n, &error)) return fail(&error);
        for (size_t i = 0; i < n && code == 0; i++) code = take(&events[i]);
    }
    return code;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: many MODEL.gguf TEXT\n");
        return 2;
    }
    minfer_error error;
    minfer_model *model = minfer_model_open(argv[1], NULL, &error);
    if (!model) return fail(&error);
    minfer_engine_options options;
    minfer_engine_options_init(&options, sizeof options);
    options.max_sequences = SEQUENCES;
    minfer_engine *engine = minfer_engine_new(model, &options, &error);
    minfer_model_close(model);
    if (!engine) return fail(&error);
    continuation continuations[SEQUENCES];
    int code = start(engine, argv[2], continuations);
    if (code == 0) code = run(engine);
    minfer_engine_free(engine);
    return code;
}
