// minfer list and minfer rm: the models in the cache.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/info.h"
#include "cli/load.h"
#include "cli/models.h"
#include "cli/terminal.h"

// What a file says of itself; `refusal` where it can't be read.
typedef struct row {
    char architecture[64], type[32];
    uint64_t bytes, parameters;
    mf_error refusal;
} row;

static void look(const char *path, row *r) {
    *r = (row){.architecture = "?", .type = "?"};
    mf_gguf *file = mf_gguf_open(path, &r->refusal);
    if (!file) return;
    mf_str arch = MF_STR("?");
    mf_gguf_get_str(file, "general.architecture", &arch, &r->refusal);
    snprintf(r->architecture, sizeof r->architecture, "%.*s", (int)(arch.len < 63 ? arch.len : 63), arch.ptr);
    snprintf(r->type, sizeof r->type, "%s", mf_info_main_type(file));
    r->bytes = mf_gguf_file_size(file);
    r->parameters = mf_info_parameters(file);
    mf_gguf_close(file);
}

// A name as it is shown, into an empty buffer.
static const char *shown(const char *name, mf_buf *buf) {
    buf->len = 0;
    mf_buf_shown(buf, mf_str_of(name), false);
    return buf->failed ? "" : buf->data;
}

static void print_text(const mf_cached_models *models, mf_buf *out) {
    int width = 4;
    mf_buf name = {0}, architecture = {0};
    for (size_t i = 0; i < models->list.len; i++) {
        size_t len = strlen(shown(models->list.data[i].name, &name));
        if ((int)len > width && len < 60) width = (int)len;
    }
    mf_buf_printf(out, "%-*s  %8s  %10s  %-10s %s\n", width, "NAME", "SIZE", "PARAMETERS", "TYPE", "ARCHITECTURE");
    for (size_t i = 0; i < models->list.len; i++) {
        const mf_cached_model *m = &models->list.data[i];
        char size[32];
        row r;
        look(m->path, &r);
        mf_buf_printf(out, "%-*s  ", width, shown(m->name, &name));
        if (r.refusal.code)
            mf_buf_printf(out, "can't be read: %s\n", r.refusal.text);
        else
            mf_buf_printf(out, "%8s  %8.1f M  %-10s %s\n", mf_bytes_text(r.bytes, size), (double)r.parameters / 1e6, r.type,
                          shown(r.architecture, &architecture));
    }
    out->failed = out->failed || name.failed || architecture.failed;
    free(name.data);
    free(architecture.data);
}

// Whether a shell takes a name as it is: nothing in it has a meaning there, and it can't be read as a flag.
static bool is_plain(const char *name) {
    if (*name == '-') return false;
    for (size_t i = 0, len = strlen(name); i < len;) {
        uint32_t cp;
        int n = mf_utf8_decode(name + i, len - i, &cp);
        bool ascii = cp < 0x80 && (isalnum((unsigned char)name[i]) || strchr("._-+:/,@", name[i]));
        if (n <= 0 || mf_utf8_is_control(cp) || (cp < 0x80 && !ascii)) return false;
        i += (size_t)n;
    }
    return true;
}

static void print_names(const mf_cached_models *models, mf_buf *out) {
    for (size_t i = 0; i < models->list.len; i++)
        if (is_plain(models->list.data[i].name)) mf_buf_printf(out, "%s\n", models->list.data[i].name);
}

static void json_row(mf_json_writer *w, const mf_cached_model *m) {
    row r;
    look(m->path, &r);
    mf_json_begin(w, '{');
    mf_json_add_text(w, "name", m->name);
    mf_json_add_text(w, "path", m->path);
    if (r.refusal.code) {
        mf_json_add_text(w, "refusal", r.refusal.text);
    } else {
        mf_json_add_int(w, "bytes", (int64_t)r.bytes);
        mf_json_add_int(w, "parameters", (int64_t)r.parameters);
        mf_json_add_text(w, "type", r.type);
        mf_json_add_text(w, "architecture", r.architecture);
    }
    mf_json_end(w, '}');
}

static void print_json(const mf_cached_models *models, mf_buf *out) {
    mf_json_writer w = {.out = out, .indent = 1};
    mf_json_begin(&w, '{');
    mf_json_add_text(&w, "directory", models->dir);
    mf_json_key(&w, "models");
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < models->list.len; i++) json_row(&w, &models->list.data[i]);
    mf_json_end(&w, ']');
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
}

int mf_command_list(mf_options *o) {
    mf_error err = {0};
    mf_cached_models models;
    mf_buf text = {0};
    mf_output out = {0};
    bool ok = mf_models_scan(&models, &err);
    if (ok && o->names)
        print_names(&models, &text);
    else if (ok && o->json)
        print_json(&models, &text);
    else if (ok && models.list.len)
        print_text(&models, &text);
    if (ok && !models.list.len)
        mf_log(MF_LOG_NOTICE, "no models in %s; a GGUF file that is put there has a name", models.dir);
    else if (ok && !o->names)
        mf_log(MF_LOG_NOTICE, "these lie in %s", models.dir);
    int code = !ok ? mf_cli_fail(&err) : mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    free(text.data);
    mf_models_free(&models);
    return code;
}

// ---- rm

static bool confirmed(const mf_cached_model *m) {
    mf_buf question = {0};
    mf_buf_text(&question, "remove ");
    mf_buf_shown(&question, mf_str_of(m->path), false);
    mf_buf_text(&question, "? [y/N] ");
    if (!question.failed) fputs(question.data, stderr);
    free(question.data);
    char answer[16];
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int mf_command_rm(mf_options *o) {
    mf_error err = {0};
    mf_cached_models models = {0};
    int code = MF_EXIT_USAGE;
    if (!o->word || !*o->word) {
        if (mf_models_scan(&models, &err))
            mf_fail(&err, MF_ERR_ARGUMENT, "no name: minfer rm NAME, one that minfer list shows; the models lie in %.300s",
                    models.dir);
    } else if (!o->yes && !isatty(STDIN_FILENO)) {
        mf_fail(&err, MF_ERR_ARGUMENT, "standard input is no terminal to ask on; --yes removes without a question");
    } else {
        const mf_cached_model *m = mf_models_scan(&models, &err) ? mf_models_named(&models, o->word, &err) : NULL;
        code = MF_EXIT_REFUSED;
        if (m && (o->yes || confirmed(m)) && mf_models_remove(&models, m, &err)) {
            mf_log(MF_LOG_NOTICE, "removed %s", m->path);
            code = MF_EXIT_DONE;
        }
    }
    if (err.code) mf_cli_fail(&err);
    mf_models_free(&models);
    return code;
}
