#include "cli/piece.h"

#include "base/utf8.h"

void mf_piece_text(mf_str piece, mf_buf *out) {
    mf_buf_char(out, '"');
    for (size_t i = 0; i < piece.len;) {
        uint32_t cp;
        int n = mf_utf8_decode(piece.ptr + i, piece.len - i, &cp);
        bool plain = n > 0 && cp >= 0x20 && cp != 0x7F;
        if (plain && (cp == '"' || cp == '\\')) mf_buf_char(out, '\\');
        if (plain)
            mf_buf_add(out, piece.ptr + i, (size_t)n);
        else if (piece.ptr[i] == '\n')
            mf_buf_text(out, "\\n");
        else
            mf_buf_printf(out, "\\x%02X", (unsigned char)piece.ptr[i]);
        i += n > 0 ? (size_t)n : 1;
    }
    mf_buf_char(out, '"');
}

void mf_piece_json(mf_str piece, mf_json_writer *w) {
    if (mf_utf8_valid(piece.ptr, piece.len, NULL)) {
        mf_json_string(w, piece);
        return;
    }
    mf_json_begin(w, '[');
    for (size_t i = 0; i < piece.len; i++) mf_json_int(w, (unsigned char)piece.ptr[i]);
    mf_json_end(w, ']');
}
