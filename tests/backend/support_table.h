// The text of docs/support.md, out of what supports() of the devices says.
#ifndef TESTS_BACKEND_SUPPORT_TABLE_H
#define TESTS_BACKEND_SUPPORT_TABLE_H

#include <ctype.h>

#include "backend/backends.h"
#include "backend/op_rows.h"
#include "base/text.h"

// Whether a device supports some cell of an operation that agrees with `want` where a mask is set.
typedef struct support_mask {
    bool formats, weight, kv;
} support_mask;

static inline bool support_any(const mf_device *d, mf_op op, support_mask mask, const mf_op_types *want) {
    mf_op_types cells[OP_MAX_CELLS];
    size_t n = op_cells(op, cells);
    for (size_t i = 0; i < n; i++) {
        const mf_op_types *t = &cells[i];
        if (mask.formats && (t->src != want->src || t->dst != want->dst)) continue;
        if (mask.weight && (t->has_weight != want->has_weight || (t->has_weight && t->weight != want->weight))) continue;
        if (mask.kv && t->kv != want->kv) continue;
        if (d->class->supports(d, op, t)) return true;
    }
    return false;
}

static inline void support_cell(mf_buf *out, bool yes) { mf_buf_text(out, yes ? " yes |" : " |"); }

static inline void support_rule(mf_buf *out, int columns) {
    mf_buf_text(out, "\n|");
    for (int i = 0; i < columns; i++) mf_buf_text(out, " --- |");
    mf_buf_char(out, '\n');
}

static inline bool support_pair_used(const mf_device *d, const mf_op_types *pair) {
    for (int op = 0; op < MF_OP_COUNT; op++)
        if (support_any(d, (mf_op)op, (support_mask){.formats = true}, pair)) return true;
    return false;
}

static inline void support_formats(const mf_device *d, mf_buf *out) {
    mf_op_types pairs[MF_FORMAT_COUNT * MF_FORMAT_COUNT];
    int n = 0;
    for (int src = 0; src < MF_FORMAT_COUNT; src++)
        for (int dst = 0; dst < MF_FORMAT_COUNT; dst++) {
            pairs[n] = (mf_op_types){.src = (mf_format)src, .dst = (mf_format)dst};
            if (support_pair_used(d, &pairs[n])) n++;
        }
    mf_buf_text(out, "\n### Operations by the formats of values\n\n| operation |");
    for (int p = 0; p < n; p++) mf_buf_printf(out, " %s → %s |", mf_format_name(pairs[p].src), mf_format_name(pairs[p].dst));
    support_rule(out, n + 1);
    for (int op = 0; op < MF_OP_COUNT; op++) {
        mf_buf_printf(out, "| %s |", mf_op_name((mf_op)op));
        for (int p = 0; p < n; p++) support_cell(out, support_any(d, (mf_op)op, (support_mask){.formats = true}, &pairs[p]));
        mf_buf_char(out, '\n');
    }
}

static inline void support_weights(const mf_device *d, mf_buf *out) {
    int columns = 1;
    mf_buf_text(out, "\n### Operations by the type of their weight\n\n| weight |");
    for (int op = 0; op < MF_OP_COUNT; op++)
        if (op_row_of((mf_op)op).weight != WEIGHT_NONE) mf_buf_printf(out, " %s |", mf_op_name((mf_op)op)), columns++;
    support_rule(out, columns);
    for (int w = -1; w < MF_TYPE_LIMIT; w++) {
        if (w >= 0 && !op_is_weight_type((uint32_t)w)) continue;
        mf_op_types t = {.has_weight = w >= 0, .weight = (mf_type)(w >= 0 ? w : 0)};
        mf_buf_printf(out, "| %s |", w >= 0 ? mf_type_name(t.weight) : "none");
        for (int op = 0; op < MF_OP_COUNT; op++)
            if (op_row_of((mf_op)op).weight != WEIGHT_NONE)
                support_cell(out, support_any(d, (mf_op)op, (support_mask){.weight = true}, &t));
        mf_buf_char(out, '\n');
    }
}

static inline void support_kv(const mf_device *d, mf_buf *out) {
    mf_buf_text(out, "\n### Operations by the type of the cache's cells\n\n| operation |");
    for (size_t k = 0; k < OP_CELL_TYPES; k++) {
        mf_buf_char(out, ' ');
        for (const char *c = mf_type_name(op_cell_types[k]); *c; c++) mf_buf_char(out, (char)tolower(*c));
        mf_buf_text(out, " |");
    }
    support_rule(out, (int)OP_CELL_TYPES + 1);
    for (int op = 0; op < MF_OP_COUNT; op++) {
        if (!op_row_of((mf_op)op).kv) continue;
        mf_buf_printf(out, "| %s |", mf_op_name((mf_op)op));
        for (size_t k = 0; k < OP_CELL_TYPES; k++) {
            mf_op_types t = {.kv = op_cell_types[k]};
            support_cell(out, support_any(d, (mf_op)op, (support_mask){.kv = true}, &t));
        }
        mf_buf_char(out, '\n');
    }
}

static inline void support_of_device(const mf_device *d, mf_buf *out) {
    mf_buf_printf(out, "\n## %s\n", d->class->name);
    support_formats(d, out);
    support_weights(d, out);
    support_kv(d, out);
}

// The whole page. cpu_row: whose supports() the CPU's part is made from; all rows of its kernel table say the same. False with err when
// a backend of this program can't be opened.
static inline bool support_page(const char *cpu_row, mf_buf *out, mf_error *err) {
    mf_buf_text(
        out, "# What runs where\n\n"
             "Made from what the backends themselves say (`supports()`): `build/tests/support_table > docs/support.md`. A "
             "test holds this\npage to it, and runs every cell below against a reference of its own "
             "(`tests/backend/test_ops.c`).\n\n"
             "`f32`: floats. `a8_32`, `a8_256`: activations in signed bytes with a scale for each 32 or 256 "
             "(`docs/arithmetic.md`).\n");
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    for (size_t i = 0; i < n; i++) {
        if (!known[i].class) continue;
        mf_device *d = known[i].class->open(&(mf_device_options){1, cpu_row}, err);
        if (!d) return false;
        support_of_device(d, out);
        d->class->close(d);
    }
    return !out->failed;
}

#endif
