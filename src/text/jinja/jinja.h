// Jinja templates with the meaning that Hugging Face's chat templates have: jinja2's immutable sandbox with trim_blocks,
// lstrip_blocks, loop controls, the generation block, its own tojson, raise_exception and strftime_now (transformers,
// utils/chat_template_utils.py). docs/chat_templates.md lists what is refused.
//
// A compiled template is immutable: any number of threads may render it at the same time.
#ifndef MF_TEXT_JINJA_JINJA_H
#define MF_TEXT_JINJA_JINJA_H

#include "base/array.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

typedef struct mf_jinja mf_jinja;

// Compiles a template of at most 1 MiB. The source is copied. NULL with err for what jinja2 would not compile and for what is
// not supported: "line L, column C: what" (1-based, columns in bytes).
mf_jinja *mf_jinja_new(mf_str source, mf_error *err);
void mf_jinja_free(mf_jinja *t); // NULL is fine

// The source, with its line ends made newlines.
mf_str mf_jinja_source(const mf_jinja *t);

// "line L, column C: there is no filter 'x'" for the first one inside an if that there is not; conversations that reach it are
// refused. NULL: all are there.
const char *mf_jinja_missing(const mf_jinja *t);

// A variable of a rendering. from_messages marks every text in it, keys too, as text of the conversation.
typedef struct mf_jinja_var {
    mf_str name;
    const mf_json *value;
    bool from_messages;
} mf_jinja_var;

// A piece of output [from, to) that came from the conversation.
typedef struct mf_jinja_mark {
    size_t from, to;
} mf_jinja_mark;

typedef struct mf_jinja_output {
    mf_buf text;
    mf_array(mf_jinja_mark) marks; // ascending, apart
    bool raised;                   // on failure: the template called raise_exception, whose words are in err
} mf_jinja_output;

typedef struct mf_jinja_options {
    uint64_t steps; // of work, each about 5 nanoseconds; 0: 200 million
    int64_t now;    // seconds since 1970 that strftime_now() takes for the time; below 0: the clock's
    // Asked several thousand times a second: true ends the rendering with MF_ERR_CANCELLED. NULL: it goes on.
    bool (*stop)(void *arg);
    void *stop_arg;
} mf_jinja_options;

// Renders into *out, which is to be freed in any case. opts may be NULL. False with err where jinja2 would raise
// ("template line L: `expression`: what") and past the bounds on steps, depth, memory and output.
bool mf_jinja_render(const mf_jinja *t, const mf_jinja_var *vars, size_t n_vars, const mf_jinja_options *opts,
                     mf_jinja_output *out, mf_error *err);
void mf_jinja_output_free(mf_jinja_output *out);

#endif
