// Panels: weights repacked at load, 16 rows side by side, at no more bytes per weight than the file's.
#ifndef MF_BACKEND_CPU_PANELS_H
#define MF_BACKEND_CPU_PANELS_H

#include "backend/cpu/kernels.h"

// Bytes of one panel (16 rows of n_in values) of a type; 0 when the type has no panel form.
size_t mf_panel_bytes(mf_type type, int64_t n_in);

// Packs rows [16*p, min(16*p+16, n_out)) of a file-layout matrix into the panel at out. Missing rows are zeros (they give 0).
void mf_panel_pack(mf_type type, const void *file_rows, int64_t n_in, int64_t n_out, int64_t p, void *out);

// Decodes row `row` of a matrix in panels to n_in floats, exactly as the type table's decode of the file's row.
void mf_panel_row(const mf_matrix *w, int64_t row, float *out);

#endif
