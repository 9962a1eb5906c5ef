// minfer grammar: holds a text against a grammar or a JSON Schema, without a model.
#include <stdlib.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/constrain.h"
#include "cli/terminal.h"

#define MOST_TEXT (256 << 20)

static int check(const mf_options *o, mf_constraint *c, mf_output *out, mf_error *err) {
    mf_buf text = {0}, line = {0};
    size_t at = 0;
    if (!mf_file_read(o->word, MOST_TEXT, &text, err)) return MF_EXIT_REFUSED;
    mf_check result = mf_constraint_check(c, (mf_str){text.data ? text.data : "", text.len}, &at, err);
    if (result == MF_CHECK_ACCEPTED) mf_buf_text(&line, "accepted\n");
    if (result == MF_CHECK_INCOMPLETE) mf_buf_text(&line, "incomplete\n");
    if (result == MF_CHECK_REJECTED) mf_buf_printf(&line, "rejected at byte %zu\n", at);
    bool shown = result == MF_CHECK_FAILED || mf_output_buf(out, &line);
    if (!shown) mf_fail_memory(err, line.len, "the result");
    free(text.data);
    free(line.data);
    return result == MF_CHECK_ACCEPTED && shown ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

int mf_command_grammar(mf_options *o) {
    mf_error err = {0};
    mf_constrained c = {0};
    mf_output out = {0};
    int code = MF_EXIT_USAGE;
    if (!mf_constrain_wanted(o) || !o->word)
        mf_fail(&err, MF_ERR_ARGUMENT,
                "minfer grammar needs --grammar or --json-schema, and a file with the text (- is standard input)");
    else
        code = mf_constrain_make(&c, o, NULL, NULL, false, &err) ? check(o, c.constraint, &out, &err) : MF_EXIT_REFUSED;
    if (err.code != MF_OK) mf_cli_fail(&err);
    mf_constrain_drop(&c);
    return code;
}
