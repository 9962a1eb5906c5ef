// Characters as bytes: UTF-8, and inside JSON strings also as escapes. Each function puts nodes in front of `next` and gives where they
// begin; MF_NO_NODE when the set is empty or the compiler has failed (mf_compiler.failed).
#ifndef MF_SAMPLE_GRAMMAR_CHARS_H
#define MF_SAMPLE_GRAMMAR_CHARS_H

#include "sample/grammar/program.h"

#define MF_NO_NODE UINT32_MAX

typedef struct mf_compiler {
    const mf_grammar *grammar;
    mf_grammar_program *program;
    mf_arena arena; // of what compiling needs
    uint32_t *set_slots;
    size_t n_set_slots;
    mf_array(uint64_t) strings; // rules of strings made so far: see compile.c
    uint32_t any_string;
    bool failed;
    mf_error *err;
} mf_compiler;

uint32_t mf_compile_node(mf_compiler *c, mf_grammar_node_kind kind, uint32_t a, uint32_t b);
uint32_t mf_compile_bytes(mf_compiler *c, const mf_byteset *set, uint32_t next);
uint32_t mf_compile_text(mf_compiler *c, const char *bytes, size_t n, uint32_t next);
uint32_t mf_compile_either(mf_compiler *c, uint32_t a, uint32_t b); // either may be MF_NO_NODE
uint32_t mf_compile_fail(mf_compiler *c, mf_code code, const char *why);
uint32_t mf_compile_no_memory(mf_compiler *c);

uint32_t mf_compile_chars(mf_compiler *c, mf_charset set, uint32_t next);        // as UTF-8
uint32_t mf_compile_string_chars(mf_compiler *c, mf_charset set, uint32_t next); // in a JSON string, spelled in any way

#endif
