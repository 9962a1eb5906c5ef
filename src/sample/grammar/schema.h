// JSON Schema as rules of a grammar: docs/constrained.md has what is understood, what is refused, and the conventions.
#ifndef MF_SAMPLE_GRAMMAR_SCHEMA_H
#define MF_SAMPLE_GRAMMAR_SCHEMA_H

#include "sample/grammar/constraint.h"
#include "sample/grammar/expr.h"

// Reads a schema into *g (zero-initialised; freed by the caller also on failure). options NULL: the defaults. False with err: a JSON
// pointer to what is wrong, not understood or allows nothing, and why.
bool mf_schema_read(mf_str schema, const mf_schema_options *options, mf_grammar *g, mf_error *err);

#endif
