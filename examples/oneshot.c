// One question, one answer, written as it comes: oneshot MODEL.gguf QUESTION
#include <minfer.h>
#include <stdio.h>

static int fail(const minfer_error *error) {
    fprintf(stderr, "oneshot: %s\n", error->text);
    return 1;
}

// Steps until the answer has ended.
static int answer(minfer_engine *engine) {
    minfer_error error;
    minfer_event event = {0};
    while (event.finish == MINFER_FINISH_NONE) {
        size_t n;
        if (!minfer_step(engine, &event, 1, &n, &error)) return fail(&error);
        if (n == 0) continue; // a part of the prompt was read
        if (event.finish == MINFER_FINISH_ERROR) return fail(event.error);
        fwrite(event.text, 1, event.text_len, stdout);
        fflush(stdout);
    }
    putchar('\n');
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: oneshot MODEL.gguf QUESTION\n");
        return 2;
    }
    minfer_error error;
    minfer_model *model = minfer_model_open(argv[1], NULL, &error);
    if (!model) return fail(&error);
    minfer_engine *engine = minfer_engine_new(model, NULL, &error);
    minfer_model_close(model); // the engine keeps what it needs
    if (!engine) return fail(&error);

    minfer_sequence_options options;
    minfer_sequence_options_init(&options, sizeof options);
    options.max_tokens = 256;
    minfer_sequence *sequence = minfer_sequence_new(engine, &options, &error);
    minfer_message question = {"user", argv[2]};
    int code = sequence && minfer_append_chat(sequence, &question, 1, true, &error) ? answer(engine) : fail(&error);
    minfer_engine_free(engine); // with its sequence
    return code;
}
