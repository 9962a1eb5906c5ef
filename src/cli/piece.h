// A token's bytes for programs: they may be a part of a character.
#ifndef MF_CLI_PIECE_H
#define MF_CLI_PIECE_H

#include "base/json.h"

// A string, or the list of its bytes where they are no whole characters.
void mf_piece_json(mf_str piece, mf_json_writer *w);

#endif
