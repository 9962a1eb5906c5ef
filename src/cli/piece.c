#include "cli/piece.h"

#include "base/utf8.h"

void mf_piece_json(mf_str piece, mf_json_writer *w) {
    if (mf_utf8_valid(piece.ptr, piece.len, NULL)) {
        mf_json_string(w, piece);
        return;
    }
    mf_json_begin(w, '[');
    for (size_t i = 0; i < piece.len; i++) mf_json_int(w, (unsigned char)piece.ptr[i]);
    mf_json_end(w, ']');
}
