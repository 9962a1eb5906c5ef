// minfer render: a conversation through a chat template, as text.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/prompt.h"
#include "cli/screen.h"

enum {
    MOST_JSON = 64 << 20
};

// What a rendering holds.
typedef struct job {
    const mf_options *o;
    mf_loaded loaded;
    mf_arena arena;
    mf_buf messages, tools;
    mf_chat_template *template;
    mf_chat_prompt prompt;
    mf_output out;
} job;

static const mf_json *read_json(job *j, const char *path, mf_buf *text, const char *flag, mf_error *err) {
    const mf_json *value = NULL;
    if (mf_input_read(path, MOST_JSON, flag, text, err)) {
        value = mf_json_parse(&j->arena, (mf_str){text->data, text->len}, err);
        if (!value) mf_fail_prefix(err, "%.200s", path);
    }
    if (!value) mf_fail_prefix(err, "%s", flag);
    return value;
}

static bool load(job *j, bool tools, mf_error *err) {
    const mf_options *o = j->o;
    if (o->model && *o->model && (!mf_load_file(&j->loaded, o->model, err) || !mf_load_tokenizer(&j->loaded, o, err)))
        return false;
    j->template = j->loaded.file ? mf_prompt_template(&j->loaded, o, tools, err)
                                 : mf_chat_template_choose(NULL, o->chat_template, err);
    return j->template != NULL;
}

static bool print_json(job *j) {
    const mf_buf *text = &j->prompt.output.text;
    mf_buf printed = {0};
    mf_json_writer w = {.out = &printed};
    mf_json_begin(&w, '{');
    mf_json_key(&w, "text");
    mf_json_string(&w, (mf_str){text->data, text->len});
    if (j->prompt.note) mf_json_add_text(&w, "note", j->prompt.note);
    mf_json_end(&w, '}');
    mf_buf_char(&printed, '\n');
    bool ok = mf_output_buf(&j->out, &printed);
    free(printed.data);
    return ok;
}

static bool render(job *j, mf_error *err) {
    const mf_options *o = j->o;
    mf_chat_request request = {
        .generation_prompt = !o->no_generation_prompt, .bos = o->bos, .eos = o->eos, .rules = o->chat_rules};
    request.messages = read_json(j, o->messages_file, &j->messages, "--messages", err);
    if (!request.messages || !mf_prompt_variables(o, &j->arena, &request.variables, err)) return false;
    if (o->tools_file && !(request.tools = read_json(j, o->tools_file, &j->tools, "--tools", err))) return false;
    if (!load(j, request.tools != NULL, err)) return false;
    request.tokenizer = j->loaded.tokenizer;
    if (!mf_chat_template_render(j->template, &request, &j->prompt, err)) return false;
    const mf_buf *text = &j->prompt.output.text;
    if (o->json) return print_json(j);
    if (j->prompt.note) mf_log(MF_LOG_NOTICE, "%s", j->prompt.note);
    return text->len == 0 || mf_screen_print(&j->out, text, o->raw_output);
}

static int check_usage(const mf_options *o, mf_error *err) {
    if (!o->messages_file)
        return mf_fail(err, MF_ERR_ARGUMENT, "render needs --messages FILE (- is standard input)"), MF_EXIT_USAGE;
    if (o->tools_file && strcmp(o->tools_file, "-") == 0 && strcmp(o->messages_file, "-") == 0)
        return mf_fail(err, MF_ERR_ARGUMENT, "--messages - and --tools -: standard input is one of them"), MF_EXIT_USAGE;
    if (!(o->model && *o->model) && !o->chat_template)
        return mf_fail(err, MF_ERR_ARGUMENT, "render needs a MODEL or --template FILE"), MF_EXIT_USAGE;
    return MF_EXIT_DONE;
}

int mf_command_render(mf_options *o) {
    job j = {.o = o};
    mf_error err = {0};
    int code = check_usage(o, &err);
    if (code == MF_EXIT_DONE && !render(&j, &err)) code = MF_EXIT_REFUSED;
    if (code != MF_EXIT_DONE && err.code != MF_OK) mf_cli_fail(&err);
    mf_chat_prompt_free(&j.prompt);
    mf_chat_template_free(j.template);
    free(j.messages.data);
    free(j.tools.data);
    mf_arena_free(&j.arena);
    mf_unload(&j.loaded);
    return code;
}
