#include "api/vocab.h"

#include <stdlib.h>

#include "base/mem.h"

// The pieces of all tokens stand in one buffer: `end[id]` is where a token's does.
static bool gather(const mf_tokenizer *t, int32_t n, mf_buf *pieces, size_t *end, mf_grammar_token *tokens) {
    for (int32_t id = 0; id < n; id++) {
        size_t before = pieces->len;
        mf_tokenizer_piece(t, id, false, pieces);
        tokens[id].text = pieces->len > before;
        if (!tokens[id].text) mf_tokenizer_piece(t, id, true, pieces);
        tokens[id].ends = mf_tokenizer_is_eog(t, id);
        // What ends an answer is not what it says, whatever its type.
        if (tokens[id].ends) tokens[id].text = false;
        end[id] = pieces->len;
    }
    return !pieces->failed;
}

mf_grammar_vocab *mf_vocab_of_tokenizer(const mf_tokenizer *t, int32_t n_model, mf_error *err) {
    int32_t n = mf_tokenizer_n_vocab(t) < n_model ? mf_tokenizer_n_vocab(t) : n_model;
    mf_grammar_token *tokens = mf_alloc((size_t)n_model + 1, sizeof *tokens);
    size_t *end = mf_alloc((size_t)n_model + 1, sizeof *end);
    mf_buf pieces = {0};
    mf_grammar_vocab *v = NULL;
    if (tokens && end && gather(t, n, &pieces, end, tokens)) {
        for (int32_t id = 0; id < n; id++) {
            size_t first = id ? end[id - 1] : 0;
            tokens[id].name = (mf_str){pieces.data ? pieces.data + first : "", end[id] - first};
        }
        v = mf_grammar_vocab_new(tokens, n_model, err);
    } else {
        mf_fail_memory(err, (size_t)n_model * sizeof *tokens, "the vocabulary");
    }
    free(tokens);
    free(end);
    free(pieces.data);
    return v;
}
