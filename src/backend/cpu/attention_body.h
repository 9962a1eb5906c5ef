// Attention over lanes (docs/arithmetic.md), part of vector_body.h. Query vectors are numbered r * n_group + g, as the states are.
// A split is done in three passes over all query vectors of the piece: scores (lanes are the 16 cells that stand side by side
// in K), exponentials, and the sum over V (lanes are channels). A few passes over the cells use them where they lie, as decoding
// does; for many, they are converted to floats once for all query vectors.

typedef struct attention_work {
    const mf_attention_piece *p;
    const mf_kv_view *kv;
    int32_t head_dim, queries;
    size_t result_stride;
    float *query, *score, *result, *largest, *sum, *cells, *scales;
    mf_cell_range range[MF_ATTENTION_ROWS]; // of the split at hand
    int32_t first_block;                    // its first cell in the first block that any row sees
} attention_work;

// How numbers stand in memory. Bytes have scales: in K one for each lane (cell) and 32 channels, in V one for each cell and two columns.
typedef enum cell_form {
    FLOATS,
    HALVES,
    BYTES_OF_K,
    BYTES_OF_V
} cell_form;

// Sixteens of cells or channels: number i of column s begins at element s * next + i * step.
typedef struct sixteens {
    const void *at;
    size_t step, next;
    cell_form form;
    ptrdiff_t ahead; // bytes to what is read after these, which is asked for along the way: a long context comes from memory
    const float *scale; // of bytes; K: [channels / 32][64], from the first column's; V: [columns / 2][64], from number 0's
} sixteens;

LANES_INLINE lanes load_sixteen(const sixteens *a, size_t index, cell_form form, int32_t column, int32_t i) {
    if (form == FLOATS) return lanes_load((const float *)a->at + index);
    if (form == HALVES) return lanes_load_f16((const uint16_t *)a->at + index);
    lanes scale = form == BYTES_OF_K ? lanes_load(a->scale + i / MF_KV_GROUP * MF_KV_BLOCK + column * MF_LANES)
                                     : lanes_set1(a->scale[column / 2 * MF_KV_BLOCK + i]);
    return lanes_mul(lanes_load_i8((const int8_t *)a->at + index), scale);
}

// Asks for what stands `ahead` of a sixteen, once for each line of 64 bytes or, of halves, twice.
LANES_INLINE void prefetch_sixteen(const sixteens *a, size_t index, cell_form form, int32_t column, int32_t i) {
    if (form == HALVES) __builtin_prefetch((const char *)((const uint16_t *)a->at + index) + a->ahead, 0, 2);
    if (form == BYTES_OF_K && i % 4 == 0) __builtin_prefetch((const char *)a->at + index + a->ahead, 0, 2);
    if (form == BYTES_OF_V && column % 4 == 0) __builtin_prefetch((const char *)a->at + index + a->ahead, 0, 2);
}

// n query vectors against `width` columns of `count` sixteens: sum[q] = fma(w[q][i], a[i], sum[q]), i ascending; from +0 unless
// `resume`. The accumulators of column s of vector q are at sum + q * sum_stride + 16 s.
LANES_INLINE void accumulate_block(int n, int width, cell_form form, const sixteens *a, int32_t column, int32_t count,
                                   const float *w, size_t w_stride, float *sum, size_t sum_stride, bool resume) {
    lanes l[LANES_BLOCK];
    size_t index = (size_t)column * a->next;
    sum += column * MF_LANES;
    LANES_UNROLL
    for (int j = 0; j < n * width; j++)
        l[j] = resume ? lanes_load(sum + (size_t)(j % n) * sum_stride + j / n * MF_LANES) : lanes_set1(0.0f);
    for (int32_t i = 0; i < count; i++, index += a->step) {
        lanes x;
        LANES_UNROLL
        for (int j = 0; j < n * width; j++) {
            if (j % n == 0) {
                x = load_sixteen(a, index + (size_t)(j / n) * a->next, form, column + j / n, i);
                prefetch_sixteen(a, index + (size_t)(j / n) * a->next, form, column + j / n, i);
            }
            l[j] = lanes_fma(lanes_set1(w[(size_t)(j % n) * w_stride + (size_t)i]), x, l[j]);
        }
    }
    LANES_UNROLL
    for (int j = 0; j < n * width; j++) lanes_store(sum + (size_t)(j % n) * sum_stride + j / n * MF_LANES, l[j]);
}

// The same over all columns, as many at a time as the registers hold: one query vector alone would wait for its additions.
LANES_INLINE void accumulate_columns(int n, cell_form form, const sixteens *a, int32_t columns, int32_t count,
                                     const float *w, size_t w_stride, float *sum, size_t sum_stride, bool resume) {
    const int most = form == FLOATS ? LANES_BLOCK : LANES_BLOCK_CONVERTED;
    const int width = most >= 4 * n ? 4 : most >= 2 * n ? 2 : 1;
    int32_t c = 0;
    for (; c + width <= columns; c += width)
        accumulate_block(n, width, form, a, c, count, w, w_stride, sum, sum_stride, resume);
    if (width > 1)
        for (; c < columns; c++) accumulate_block(n, 1, form, a, c, count, w, w_stride, sum, sum_stride, resume);
}

// The same for any n up to LANES_BLOCK.
static void accumulate(int32_t n, const sixteens *a, int32_t columns, int32_t count, const float *w, size_t w_stride,
                       float *sum, size_t sum_stride, bool resume) {
#define FORM(N, FORM_)                                                                         \
    case FORM_:                                                                                \
        accumulate_columns(N, FORM_, a, columns, count, w, w_stride, sum, sum_stride, resume); \
        break;
#define CASE(N)                 \
    case N:                     \
        switch (a->form) {      \
            FORM(N, FLOATS)     \
            FORM(N, HALVES)     \
            FORM(N, BYTES_OF_K) \
            FORM(N, BYTES_OF_V) \
        }                       \
        break;
    switch (n) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if LANES_BLOCK > 6
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
#endif
    }
#undef CASE
#undef FORM
}

static cell_form form_of(const attention_work *w, cell_form bytes) {
    return w->kv->type == MF_TYPE_F32 ? FLOATS : w->kv->type == MF_TYPE_F16 ? HALVES : bytes;
}

// The scales of a block's K or V, as floats.
static const float *load_scales(const attention_work *w, const uint8_t *half) {
    int32_t n = (int32_t)mf_kv_n_scales(w->kv->type, w->head_dim);
    const uint16_t *from = mf_kv_scales(w->kv, half);
    for (int32_t i = 0; i < n; i += MF_LANES) lanes_store(w->scales + i, lanes_load_f16(from + i));
    return w->scales;
}

// Columns of a block's K as floats.
LANES_INLINE void load_k_form(const attention_work *w, const sixteens *k, cell_form form, int32_t columns) {
    size_t index = 0;
    float *to = w->cells;
    for (int32_t c = 0; c < columns; c++)
        for (int32_t d = 0; d < w->head_dim; d++, index += MF_LANES, to += MF_LANES) {
            lanes_store(to, load_sixteen(k, index, form, c, d));
            prefetch_sixteen(k, index, form, c, d);
        }
}

static void load_k(const attention_work *w, const sixteens *k, int32_t columns) {
    if (k->form == FLOATS)
        load_k_form(w, k, FLOATS, columns);
    else if (k->form == HALVES)
        load_k_form(w, k, HALVES, columns);
    else
        load_k_form(w, k, BYTES_OF_K, columns);
}

static const uint8_t *block_part(const attention_work *w, int32_t split, int32_t cell) {
    int64_t number = (int64_t)split * (MF_ATTENTION_SPLIT / MF_KV_BLOCK) + cell / MF_KV_BLOCK;
    return mf_kv_part(w->kv, w->p->layer, w->p->table[number], w->p->kv_head);
}

static mf_cell_range both(mf_cell_range a, mf_cell_range b) {
    return (mf_cell_range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

static mf_cell_range range_of(const attention_work *w, int32_t query) { return w->range[query / w->p->n_group]; }

// How far behind a block's K or V what is read next begins, in bytes: that of the next block; behind the last K of a split its first V, and
// behind the last V the first K of the next split, whoever reads it. 0: nothing.
static ptrdiff_t next_read(const attention_work *w, int32_t split, int32_t block, bool is_v) {
    int32_t next = block + MF_KV_BLOCK;
    bool more = (int64_t)split * MF_ATTENTION_SPLIT + next <= w->p->cell[w->p->n_rows - 1];
    bool within = more && next < MF_ATTENTION_SPLIT;
    if (is_v && !more) return 0;
    const uint8_t *from = block_part(w, split, block) + (is_v ? w->kv->v_offset : 0);
    const uint8_t *to = block_part(w, split, within || is_v ? next : w->first_block);
    return to + (is_v == within ? w->kv->v_offset : 0) - from;
}

// What is seen of some cells of a split: by which query vectors (those between the first and the last row that see any; rows
// between them may see none), and which cells (between the first and the last that are seen by any).
typedef struct seen {
    mf_cell_range queries, cells;
} seen;

static seen seen_of(const attention_work *w, mf_cell_range cells) {
    seen s = {.cells = {cells.end, cells.begin}};
    for (int32_t r = 0; r < w->p->n_rows; r++) {
        mf_cell_range row = both(cells, w->range[r]);
        if (row.begin >= row.end) continue;
        if (s.queries.end == 0) s.queries.begin = r * w->p->n_group;
        s.queries.end = (r + 1) * w->p->n_group;
        if (row.begin < s.cells.begin) s.cells.begin = row.begin;
        if (row.end > s.cells.end) s.cells.end = row.end;
    }
    return s;
}

// Splits n query vectors evenly into passes of at most LANES_BLOCK: the first of pass i.
static int32_t passes_for(int32_t n) { return (n + LANES_BLOCK - 1) / LANES_BLOCK; }

static int32_t pass_begin(mf_cell_range queries, int32_t pass) {
    int32_t n = queries.end - queries.begin;
    return queries.begin + n * pass / passes_for(n);
}

// So few passes over cells in place cost less than converting them first (measured with 1 to 8 heads a group).
static bool in_place(mf_cell_range queries, cell_form form) {
    return passes_for(queries.end - queries.begin) <= (form == HALVES ? 4 : 2);
}

static void scores(const attention_work *w, int32_t split) {
    size_t head_dim = (size_t)w->head_dim, column = head_dim * MF_KV_LANES;
    for (int32_t block = 0; block < MF_ATTENTION_SPLIT; block += MF_KV_BLOCK) {
        seen s = seen_of(w, (mf_cell_range){block, block + MF_KV_BLOCK});
        if (s.queries.end == 0) continue;
        const uint8_t *part = block_part(w, split, block);
        int32_t first = (s.cells.begin - block) / MF_KV_LANES, columns = (s.cells.end - 1 - block) / MF_KV_LANES + 1 - first;
        sixteens k = {part + (size_t)first * column * mf_kv_element_bytes(w->kv->type),
                      MF_KV_LANES,
                      column,
                      form_of(w, BYTES_OF_K),
                      next_read(w, split, block, false),
                      load_scales(w, part) + first * MF_KV_LANES};
        if (!in_place(s.queries, k.form)) {
            load_k(w, &k, columns);
            k = (sixteens){w->cells, MF_KV_LANES, column, FLOATS, 0, NULL};
        }
        for (int32_t i = 0; i < passes_for(s.queries.end - s.queries.begin); i++) {
            int32_t q = pass_begin(s.queries, i), n = pass_begin(s.queries, i + 1) - q;
            accumulate(n, &k, columns, w->head_dim, w->query + (size_t)q * head_dim, head_dim,
                       w->score + (size_t)q * MF_SCORE_STRIDE + block + first * MF_KV_LANES, MF_SCORE_STRIDE, false);
        }
    }
}

static void cap_scores(float *score, int32_t begin, int32_t end, float cap) {
    lanes t = lanes_set1(cap), one = lanes_set1(1.0f), two = lanes_set1(2.0f);
    for (int32_t c = begin; c < end; c += MF_LANES) {
        lanes grown = lanes_exp(lanes_mul(two, lanes_div(lanes_load(score + c), t)));
        lanes_store(score + c, lanes_mul(t, lanes_sub(one, lanes_div(two, lanes_add(grown, one)))));
    }
}

// Scores of one query vector to p in place; its m and l. Lanes outside the range hold whatever K's memory gave: their scores become
// -infinity, so p = +0 (or m is not finite, and l is NaN with or without them).
static void exponentials(const attention_work *w, int32_t q, mf_cell_range range) {
    float *score = w->score + (size_t)q * MF_SCORE_STRIDE;
    int32_t begin = range.begin / MF_LANES * MF_LANES, end = (range.end + MF_LANES - 1) / MF_LANES * MF_LANES;
    if (w->p->softcap > 0.0f) cap_scores(score, begin, end, w->p->softcap);
    for (int32_t c = begin; c < range.begin; c++) score[c] = -INFINITY;
    for (int32_t c = range.end; c < end; c++) score[c] = -INFINITY;
    lanes largest = lanes_set1(-INFINITY), sum = lanes_set1(0.0f);
    for (int32_t c = begin; c < end; c += MF_LANES) largest = lanes_max(lanes_load(score + c), largest);
    float m = lanes_fold_max(largest);
    largest = lanes_set1(m);
    for (int32_t c = begin; c < end; c += MF_LANES) {
        lanes p = lanes_exp_of_negative(lanes_sub(lanes_load(score + c), largest));
        lanes_store(score + c, p);
        sum = lanes_add(sum, p);
    }
    w->largest[q] = m;
    w->sum[q] = lanes_fold_sum(sum);
}

// Cells of a block whose V is at `block_v` into the results of n <= LANES_BLOCK query vectors from q.
static void weigh(const attention_work *w, int32_t q, int32_t n, mf_cell_range cells, const sixteens *block_v) {
    if (cells.begin >= cells.end) return;
    sixteens v = *block_v;
    int32_t skip = cells.begin % MF_KV_BLOCK;
    v.at = (const uint8_t *)v.at + (size_t)skip * v.step * (v.form == FLOATS ? 4 : v.form == HALVES ? 2 : 1);
    if (v.form == BYTES_OF_V) v.scale += skip;
    accumulate(n, &v, (int32_t)(w->result_stride / MF_LANES), cells.end - cells.begin,
               w->score + (size_t)q * MF_SCORE_STRIDE + cells.begin, MF_SCORE_STRIDE,
               w->result + (size_t)q * w->result_stride, w->result_stride, true);
}

// What single rows of the query vectors [q, q + n) see of the cells `part`, one vector after the other.
static void weigh_singly(const attention_work *w, int32_t q, int32_t n, mf_cell_range part, const sixteens *v) {
    for (int32_t i = q; part.begin < part.end && i < q + n; i++) weigh(w, i, 1, both(range_of(w, i), part), v);
}

// A block of cells into the results of n query vectors from q: each sees its own cells only. What all see is done together, what is
// before and behind it singly.
static void weigh_block(const attention_work *w, int32_t q, int32_t n, mf_cell_range block, const sixteens *v) {
    mf_cell_range all = block;
    for (int32_t r = q / w->p->n_group, last = (q + n - 1) / w->p->n_group; r <= last; r++) all = both(all, w->range[r]);
    if (all.begin >= all.end) all = (mf_cell_range){block.end, block.end};
    weigh_singly(w, q, n, (mf_cell_range){block.begin, all.begin}, v);
    weigh(w, q, n, all, v);
    weigh_singly(w, q, n, (mf_cell_range){all.end, block.end}, v);
}

// Columns of 16 channels as floats are as far apart as this: not a power of two, so that they do not meet in one cache set.
#define COLUMN_STRIDE ((MF_KV_BLOCK + 1) * MF_LANES)

// Cells [first, first + n) of a block's V as [columns][64 cells][16].
LANES_INLINE void load_v_form(const attention_work *w, const sixteens *v, cell_form form, int32_t first, int32_t n) {
    int32_t head_dim = w->head_dim, whole = head_dim / MF_LANES * MF_LANES;
    for (int32_t c = first; c < first + n; c++) {
        size_t cell = (size_t)c * (size_t)head_dim;
        float *to = w->cells + c * MF_LANES;
        for (int32_t d = 0; d < whole; d += MF_LANES, to += COLUMN_STRIDE) {
            lanes_store(to, load_sixteen(v, cell + (size_t)d, form, d / MF_LANES, c));
            prefetch_sixteen(v, cell + (size_t)d, form, d / MF_LANES, c);
        }
        if (whole == head_dim) continue;
        if (form == HALVES) {
            uint16_t rest[MF_LANES] = {0};
            memcpy(rest, (const uint16_t *)v->at + cell + whole, (size_t)(head_dim - whole) * sizeof *rest);
            lanes_store(to, lanes_load_f16(rest));
        } else {
            lanes_store(to, lanes_load_part((const float *)v->at + cell + whole, head_dim - whole));
        }
    }
}

static void load_v(const attention_work *w, const sixteens *v, int32_t first, int32_t n) {
    if (v->form == FLOATS)
        load_v_form(w, v, FLOATS, first, n);
    else if (v->form == HALVES)
        load_v_form(w, v, HALVES, first, n);
    else
        load_v_form(w, v, BYTES_OF_V, first, n);
}

static void results(const attention_work *w, int32_t split) {
    for (int32_t cell = 0; cell < MF_ATTENTION_SPLIT; cell += MF_KV_BLOCK) {
        mf_cell_range block = {cell, cell + MF_KV_BLOCK};
        seen s = seen_of(w, block);
        if (s.queries.end == 0) continue;
        const uint8_t *half = block_part(w, split, cell) + w->kv->v_offset;
        sixteens v = {half,
                      (size_t)w->head_dim,
                      MF_LANES,
                      form_of(w, BYTES_OF_V),
                      next_read(w, split, cell, true),
                      load_scales(w, half)};
        if (!in_place(s.queries, v.form) || w->head_dim % MF_LANES != 0) {
            load_v(w, &v, s.cells.begin - cell, s.cells.end - s.cells.begin);
            v = (sixteens){w->cells, MF_LANES, COLUMN_STRIDE, FLOATS, 0, NULL};
        }
        for (int32_t i = 0; i < passes_for(s.queries.end - s.queries.begin); i++) {
            int32_t q = pass_begin(s.queries, i);
            weigh_block(w, q, pass_begin(s.queries, i + 1) - q, block, &v);
        }
    }
}

// Merges a later split's m, l and o into a state.
static void merge_state(float *state, float m, float l, const float *o, int32_t head_dim) {
    float *to = state + 2;
    if (state[1] == 0.0f) {
        state[0] = m;
        state[1] = l;
        memcpy(to, o, (size_t)head_dim * sizeof *o);
        return;
    }
    float larger = mf_larger(m, state[0]);
    lanes old = lanes_exp_of_negative(lanes_set1(state[0] - larger)), fresh = lanes_exp_of_negative(lanes_set1(m - larger));
    float both_l[MF_LANES];
    lanes_store(both_l, lanes_fma(lanes_set1(state[1]), old, lanes_mul(lanes_set1(l), fresh)));
    state[0] = larger;
    state[1] = both_l[0];
    LANES_MAP2(to, o, to, head_dim, lanes_fma(x, old, lanes_mul(y, fresh)));
}

static void vector_attention_merge(float *a, const float *b, int32_t n, int32_t head_dim) {
    size_t step = mf_attention_state_floats(head_dim);
    for (int32_t i = 0; i < n; i++, a += step, b += step)
        if (b[1] != 0.0f) merge_state(a, b[0], b[1], b + 2, head_dim);
}

static void attend_split(attention_work *w, int32_t split) {
    const mf_attention_piece *p = w->p;
    for (int32_t r = 0; r < p->n_rows; r++) w->range[r] = mf_attention_cells(p, r, split);
    seen s = seen_of(w, (mf_cell_range){0, MF_ATTENTION_SPLIT});
    if (s.queries.end == 0) return;
    w->first_block = s.cells.begin / MF_KV_BLOCK * MF_KV_BLOCK;
    scores(w, split);
    for (int32_t q = 0; q < w->queries; q++) {
        mf_cell_range range = range_of(w, q);
        if (range.begin < range.end) exponentials(w, q, range);
    }
    memset(w->result, 0, (size_t)w->queries * w->result_stride * sizeof *w->result);
    results(w, split);
    for (int32_t q = 0; q < w->queries; q++) {
        mf_cell_range range = range_of(w, q);
        if (range.begin < range.end)
            merge_state(p->state + (size_t)q * mf_attention_state_floats(w->head_dim), w->largest[q], w->sum[q],
                        w->result + (size_t)q * w->result_stride, w->head_dim);
    }
}

static void vector_attention(const mf_attention_piece *p) {
    int32_t head_dim = p->kv->head_dim, queries = p->n_rows * p->n_group;
    mf_attention_layout layout = mf_attention_layout_of((size_t)queries, head_dim);
    float *scratch = p->scratch + (-((uintptr_t)p->scratch / sizeof(float)) & (MF_LANES - 1));
    attention_work w = {.p = p,
                        .kv = p->kv,
                        .head_dim = head_dim,
                        .queries = queries,
                        .result_stride = layout.result_stride,
                        .query = scratch + layout.query,
                        .score = scratch + layout.score,
                        .result = scratch + layout.result,
                        .largest = scratch + layout.largest,
                        .sum = scratch + layout.sum,
                        .cells = scratch + layout.cells,
                        .scales = scratch + layout.scales};
    for (int32_t r = 0; r < p->n_rows; r++) {
        int64_t n = (int64_t)p->n_group * head_dim;
        vector_scale(p->q + (size_t)r * p->q_stride, p->scale, w.query + (int64_t)r * n, n);
    }
    for (int32_t q = 0; q < queries && p->kv->type == MF_TYPE_Q8_0; q++)
        vector_hadamard(w.query + (int64_t)q * head_dim, w.query + (int64_t)q * head_dim, head_dim);
    for (int32_t q = 0; q < queries; q++) p->state[(size_t)q * mf_attention_state_floats(head_dim) + 1] = 0.0f;
    for (int32_t split = p->split0; split < p->split1; split++) attend_split(&w, split);
}
