// Any bytes as a chat template: compiled and, where that is possible, rendered on a fixed conversation. Marks stay in order and
// inside the output.
#include <stdint.h>
#include <stdlib.h>

#include "text/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char talk[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"Be <kind>.\"}, {\"role\": \"user\", "
                               "\"content\": \" h\\u00e9 \\n\"},"
                               "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"name\": \"f\", "
                               "\"arguments\": {\"a\": [1, 2.5, true]}}]}],"
                               "\"tools\": [{\"name\": \"f\", \"n\": 123456789012345678901234567890}], \"bos_token\": "
                               "\"<s>\", \"x\": {\"a\": {\"b\": [\"c\"]}},"
                               "\"add_generation_prompt\": true}";
    if (size > 4096) return 0; // longer ones only take longer
    mf_arena arena = {0};
    mf_error err = {0};
    const mf_json *variables = mf_json_parse(&arena, MF_STR(talk), &err);
    mf_jinja_var vars[8];
    size_t n = 0;
    for (const mf_json *v = variables->child; v; v = v->next)
        vars[n++] = (mf_jinja_var){v->key, v, mf_str_is(v->key, "messages")};
    mf_jinja *t = mf_jinja_new((mf_str){(const char *)data, size}, &err);
    mf_jinja_output out = {0};
    if (!t && err.code == MF_OK) abort();
    if (t && !mf_jinja_render(t, vars, n, NULL, &out, &err) && err.code == MF_OK) abort();
    size_t at = 0;
    for (size_t i = 0; i < out.marks.len; i++) {
        if (out.marks.data[i].from < at || out.marks.data[i].to <= out.marks.data[i].from) abort();
        at = out.marks.data[i].to;
    }
    if (at > out.text.len) abort();
    mf_jinja_output_free(&out);
    mf_jinja_free(t);
    mf_arena_free(&arena);
    return 0;
}
