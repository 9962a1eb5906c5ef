// minfer list and minfer rm: the models in the cache.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
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

static void print_text(const mf_cached_models *models, mf_buf *out) {
    int width = 4;
    for (size_t i = 0; i < models->list.len; i++) {
        size_t len = strlen(models->list.data[i].name);
        if ((int)len > width && len < 60) width = (int)len;
    }
    mf_buf_printf(out, "%-*s  %8s  %10s  %-10s %s\n", width, "NAME", "SIZE", "PARAMETERS", "TYPE", "ARCHITECTURE");
    for (size_t i = 0; i < models->list.len; i++) {
        const mf_cached_model *m = &models->list.data[i];
        char size[32];
        row r;
        look(m->path, &r);
        if (r.refusal.code)
            mf_buf_printf(out, "%-*s  can't be read: %s\n", width, m->name, r.refusal.text);
        else
            mf_buf_printf(out, "%-*s  %8s  %8.1f M  %-10s %s\n", width, m->name, mf_bytes_text(r.bytes, size),
                          (double)r.parameters / 1e6, r.type, r.architecture);
    }
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
    if (ok && o->json) print_json(&models, &text);
    if (ok && !o->json && models.list.len) print_text(&models, &text);
    if (ok && !models.list.len)
        mf_log(MF_LOG_NOTICE, "no models in %s; a GGUF file that is put there has a name", models.dir);
    else if (ok)
        mf_log(MF_LOG_DEBUG, "these lie in %s", models.dir);
    int code = !ok ? mf_cli_fail(&err) : mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    free(text.data);
    mf_models_free(&models);
    return code;
}

// ---- rm

// Removes the file, or all parts of a split one: "…-00001-of-00003.gguf" says how many there are.
static bool remove_files(const char *path, mf_error *err) {
    size_t len = strlen(path);
    int parts = 1;
    const char *of = len > 14 ? path + len - 14 : "";
    bool split = strncmp(of, "-of-", 4) == 0 && (parts = (int)strtol(of + 4, NULL, 10)) > 0;
    for (int i = 1; i <= parts; i++) {
        mf_buf part = {0};
        if (split)
            mf_buf_printf(&part, "%.*s%05d%s", (int)(len - 19), path, i, of);
        else
            mf_buf_text(&part, path);
        if (part.failed) return free(part.data), mf_fail_memory(err, len, "a path");
        bool gone = unlink(part.data) == 0 || (errno == ENOENT && i > 1);
        if (!gone) mf_fail(err, MF_ERR_IO, "can't remove %.300s: %s", part.data, strerror(errno));
        free(part.data);
        if (!gone) return false;
    }
    return true;
}

static bool confirmed(const mf_cached_model *m) {
    fprintf(stderr, "remove %s? [y/N] ", m->path);
    char answer[16];
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int mf_command_rm(mf_options *o) {
    mf_error err = {0};
    mf_cached_models models = {0};
    int code = MF_EXIT_USAGE;
    if (!o->word || !*o->word) {
        mf_fail(&err, MF_ERR_ARGUMENT, "no name: minfer rm NAME, one that minfer list shows");
    } else if (!o->yes && !isatty(STDIN_FILENO)) {
        mf_fail(&err, MF_ERR_ARGUMENT, "standard input is no terminal to ask on; --yes removes without a question");
    } else {
        const mf_cached_model *m = mf_models_scan(&models, &err) ? mf_models_find(&models, o->word, &err) : NULL;
        code = MF_EXIT_REFUSED;
        if (m && (o->yes || confirmed(m)) && remove_files(m->path, &err)) {
            mf_log(MF_LOG_NOTICE, "removed %s", m->path);
            code = MF_EXIT_DONE;
        }
    }
    if (err.code) mf_cli_fail(&err);
    mf_models_free(&models);
    return code;
}
