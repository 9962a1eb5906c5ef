// GBNF, the notation for grammars that llama.cpp made common: docs/constrained.md has what is understood.
#ifndef MF_SAMPLE_GRAMMAR_GBNF_H
#define MF_SAMPLE_GRAMMAR_GBNF_H

#include "sample/grammar/expr.h"
#include "sample/grammar/vocab.h"

// Reads rules into *g (zero-initialised; freed by the caller also on failure); the rule `root` is the whole. vocab: for tokens by their
// text (<token>); NULL: they are refused. False with err: "line L, column C: what"; rules that are used and not defined, by name and
// line.
bool mf_gbnf_parse(mf_str text, const mf_grammar_vocab *vocab, mf_grammar *g, mf_error *err);

#endif
