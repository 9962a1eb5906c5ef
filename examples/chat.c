// A conversation: chat MODEL.gguf < QUESTIONS. Each line of standard input is a question; answers are written as they come.
#include <minfer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const minfer_error *error) {
    fprintf(stderr, "chat: %s\n", error->text);
    return 1;
}

// {"role": "user", "content": LINE}; to be freed. NULL: memory is out.
static char *user_message(const char *line) {
    char *message = malloc(6 * strlen(line) + 64), *to = message;
    if (!message) return NULL;
    to += sprintf(to, "{\"role\": \"user\", \"content\": \"");
    for (const char *p = line; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\' || c < 0x20)
            to += sprintf(to, "\\u%04x", c);
        else
            *to++ = *p;
    }
    strcpy(to, "\"}");
    return message;
}

static int answer(minfer_engine *engine) {
    minfer_error error;
    while (!minfer_idle(engine)) {
        minfer_event event;
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

static int ask(minfer_engine *engine, minfer_conversation *conversation, char *line) {
    minfer_error error;
    line[strcspn(line, "\r\n")] = 0;
    char *message = user_message(line);
    bool ok = message && minfer_conversation_add(conversation, message, strlen(message), &error);
    free(message);
    if (!message) return 1;
    if (!ok || !minfer_conversation_answer(conversation, &error)) return fail(&error);
    return answer(engine);
}

// The whole history, on standard error.
static int show(const minfer_conversation *conversation) {
    minfer_error error;
    size_t n;
    if (!minfer_conversation_messages(conversation, NULL, 0, &n, &error)) return fail(&error);
    char *text = malloc(n + 1);
    bool ok = text && minfer_conversation_messages(conversation, text, n + 1, &n, &error);
    if (ok) fprintf(stderr, "%s\n", text);
    free(text);
    return ok ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: chat MODEL.gguf < QUESTIONS\n");
        return 2;
    }
    minfer_error error;
    minfer_model *model = minfer_model_open(argv[1], NULL, &error);
    if (!model) return fail(&error);
    minfer_engine *engine = minfer_engine_new(model, NULL, &error);
    minfer_model_close(model);
    if (!engine) return fail(&error);

    minfer_conversation_options options;
    minfer_conversation_options_init(&options, sizeof options);
    options.max_tokens = 256;
    minfer_conversation *conversation = minfer_conversation_new(engine, &options, &error);
    int code = conversation ? 0 : fail(&error);
    char line[4096];
    while (code == 0 && fgets(line, sizeof line, stdin)) code = ask(engine, conversation, line);
    if (code == 0) code = show(conversation);
    minfer_engine_free(engine); // with its conversation
    return code;
}
