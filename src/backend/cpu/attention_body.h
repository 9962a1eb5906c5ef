// Attention over lanes (docs/arithmetic.md), part of vector_body.h. Query vectors are numbered r * n_group + g, as the states are.
// A split is done in three passes over all query vectors of the piece: scores (lanes are the 16 cells that stand side by side
// in K), exponentials, and the sum over V (lanes are channels). Cells are converted to floats once for all query vectors.

typedef struct attention_work {
    const mf_attention_piece *p;
    const mf_kv_view *kv;
    int32_t head_dim, queries;
    size_t result_stride;
    float *query, *score, *result, *largest, *sum, *cells;
    mf_cell_range range[MF_ATTENTION_ROWS]; // of the split at hand
} attention_work;

// n query vectors against `count` sixteens a[i]: sum[q] = fma(w[q][i], a[i], sum[q]), i ascending. From +0 unless `resume`.
LANES_INLINE void accumulate_block(int n, const float *a, int32_t count, const float *w, size_t w_stride, float *sum,
                                   size_t sum_stride, bool resume) {
    lanes l[LANES_BLOCK];
    LANES_UNROLL
    for (int q = 0; q < n; q++) l[q] = resume ? lanes_load(sum + (size_t)q * sum_stride) : lanes_set1(0.0f);
    for (int32_t i = 0; i < count; i++, a += MF_LANES) {
        lanes x = lanes_load(a);
        LANES_UNROLL
        for (int q = 0; q < n; q++) l[q] = lanes_fma(lanes_set1(w[(size_t)q * w_stride + (size_t)i]), x, l[q]);
    }
    LANES_UNROLL
    for (int q = 0; q < n; q++) lanes_store(sum + (size_t)q * sum_stride, l[q]);
}

// The same for any n up to LANES_BLOCK.
static void accumulate(int32_t n, const float *a, int32_t count, const float *w, size_t w_stride, float *sum,
                       size_t sum_stride, bool resume) {
    switch (n) {
#define CASE(N) \
    case N: accumulate_block(N, a, count, w, w_stride, sum, sum_stride, resume); break;
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
#undef CASE
    }
}

static void load_cells(const attention_work *w, const uint8_t *from, size_t first, int32_t n, float *to) {
    if (w->kv->type == MF_TYPE_F16) {
        const uint16_t *half = (const uint16_t *)from + first;
        for (int32_t i = 0; i < n; i += MF_LANES) lanes_store(to + i, lanes_load_f16(half + i));
    } else {
        memcpy(to, (const float *)from + first, (size_t)n * sizeof *to);
    }
}

static const uint8_t *block_part(const attention_work *w, int32_t split, int32_t cell) {
    int64_t number = (int64_t)split * (MF_ATTENTION_SPLIT / MF_KV_BLOCK) + cell / MF_KV_BLOCK;
    return mf_kv_part(w->kv, w->p->layer, w->p->table[number], w->p->kv_head);
}

// The rows that see any of the split's cells [begin, end), as a range of query vectors (rows between them may see none).
static mf_cell_range queries_of(const attention_work *w, int32_t begin, int32_t end) {
    mf_cell_range rows = {0, 0};
    for (int32_t r = 0; r < w->p->n_rows; r++) {
        if (w->range[r].begin >= end || w->range[r].end <= begin || w->range[r].begin >= w->range[r].end) continue;
        if (rows.end == 0) rows.begin = r;
        rows.end = r + 1;
    }
    return (mf_cell_range){rows.begin * w->p->n_group, rows.end * w->p->n_group};
}

static void scores(const attention_work *w, int32_t split) {
    for (int32_t cell = 0; cell < MF_ATTENTION_SPLIT; cell += MF_KV_LANES) {
        mf_cell_range some = queries_of(w, cell, cell + MF_KV_LANES);
        int32_t n = some.end - some.begin;
        if (n == 0) continue;
        load_cells(w, block_part(w, split, cell), mf_kv_k_index(w->head_dim, cell % MF_KV_BLOCK, 0),
                   w->head_dim * MF_KV_LANES, w->cells);
        int32_t passes = (n + LANES_BLOCK - 1) / LANES_BLOCK;
        for (int32_t i = 0; i < passes; i++) {
            int32_t q0 = some.begin + n * i / passes, q1 = some.begin + n * (i + 1) / passes;
            accumulate(q1 - q0, w->cells, w->head_dim, w->query + (size_t)q0 * (size_t)w->head_dim, (size_t)w->head_dim,
                       w->score + (size_t)q0 * MF_SCORE_STRIDE + cell, MF_SCORE_STRIDE, false);
        }
    }
}

// Scores of one query vector to p in place; its m and l. Lanes outside the range hold whatever K's memory gave.
static void exponentials(const attention_work *w, int32_t q, mf_cell_range range) {
    float *score = w->score + (size_t)q * MF_SCORE_STRIDE;
    int32_t first = range.begin / MF_LANES * MF_LANES;
    float cap = w->p->softcap;
    lanes t = lanes_set1(cap), one = lanes_set1(1.0f), two = lanes_set1(2.0f);
    lanes largest = lanes_set1(-INFINITY), sum = lanes_set1(0.0f);
    for (int32_t c = first; c < range.end; c += MF_LANES) {
        lanes s = lanes_load(score + c);
        if (cap > 0.0f) {
            lanes grown = lanes_exp(lanes_mul(two, lanes_div(s, t)));
            s = lanes_mul(t, lanes_sub(one, lanes_div(two, lanes_add(grown, one))));
        }
        s = lanes_select(lanes_between(range.begin - c, range.end - c), s, lanes_set1(-INFINITY));
        lanes_store(score + c, s);
        largest = lanes_max(s, largest);
    }
    float m = lanes_fold_max(largest);
    largest = lanes_set1(m);
    for (int32_t c = first; c < range.end; c += MF_LANES) {
        lanes p = lanes_exp_of_negative(lanes_sub(lanes_load(score + c), largest));
        p = lanes_select(lanes_between(range.begin - c, range.end - c), p, lanes_set1(0.0f));
        lanes_store(score + c, p);
        sum = lanes_add(sum, p);
    }
    w->largest[q] = m;
    w->sum[q] = lanes_fold_sum(sum);
}

// Cells [range.begin, range.end) of the split into sixteen channels of the results of n <= LANES_BLOCK query vectors.
static void weigh(const attention_work *w, int32_t q, int32_t n, mf_cell_range range, int32_t block, const float *slice,
                  size_t channel) {
    if (range.begin >= range.end) return;
    accumulate(n, slice + (size_t)(range.begin - block) * MF_LANES, range.end - range.begin,
               w->score + (size_t)q * MF_SCORE_STRIDE + range.begin, MF_SCORE_STRIDE,
               w->result + (size_t)q * w->result_stride + channel, w->result_stride, true);
}

static mf_cell_range both(mf_cell_range a, mf_cell_range b) {
    return (mf_cell_range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// The cells of one block into sixteen channels of n query vectors from q: each sees its own cells only. What all see is done
// together, what is before and behind it one by one.
static void weigh_block(const attention_work *w, int32_t q, int32_t n, mf_cell_range block, const float *slice,
                        size_t channel) {
    int32_t n_group = w->p->n_group;
    mf_cell_range all = block;
    for (int32_t r = q / n_group; r <= (q + n - 1) / n_group; r++) all = both(all, w->range[r]);
    if (all.begin >= all.end) all = (mf_cell_range){block.end, block.end};
    for (int32_t i = q; i < q + n; i++) {
        mf_cell_range before = both(both(block, w->range[i / n_group]), (mf_cell_range){block.begin, all.begin});
        weigh(w, i, 1, before, block.begin, slice, channel);
    }
    weigh(w, q, n, all, block.begin, slice, channel);
    for (int32_t i = q; i < q + n; i++) {
        mf_cell_range behind = both(both(block, w->range[i / n_group]), (mf_cell_range){all.end, block.end});
        weigh(w, i, 1, behind, block.begin, slice, channel);
    }
}

// Cells [first, first + n) of V in a block as [slice of 16 channels][64 cells][16].
static void load_slices(const attention_work *w, const uint8_t *v, int32_t first, int32_t n) {
    int32_t head_dim = w->head_dim, whole = head_dim / MF_LANES * MF_LANES;
    for (int32_t c = first; c < first + n; c++) {
        size_t cell = (size_t)c * (size_t)head_dim;
        float *to = w->cells + c * MF_LANES;
        for (int32_t d = 0; d < whole; d += MF_LANES) load_cells(w, v, cell + (size_t)d, MF_LANES, to + d * MF_KV_BLOCK);
        if (whole == head_dim) continue;
        to += whole * MF_KV_BLOCK;
        if (w->kv->type == MF_TYPE_F16) {
            uint16_t rest[MF_LANES] = {0};
            memcpy(rest, (const uint16_t *)v + cell + whole, (size_t)(head_dim - whole) * sizeof *rest);
            lanes_store(to, lanes_load_f16(rest));
        } else {
            lanes_store(to, lanes_load_part((const float *)v + cell + whole, head_dim - whole));
        }
    }
}

static void results(const attention_work *w, int32_t split) {
    for (int32_t cell = 0; cell < MF_ATTENTION_SPLIT; cell += MF_KV_BLOCK) {
        mf_cell_range block = {cell, cell + MF_KV_BLOCK}, seen = {block.end, block.begin};
        mf_cell_range some = queries_of(w, block.begin, block.end);
        int32_t n = some.end - some.begin;
        if (n == 0) continue;
        for (int32_t r = 0; r < w->p->n_rows; r++) {
            mf_cell_range row = both(block, w->range[r]);
            if (row.begin >= row.end) continue;
            if (row.begin < seen.begin) seen.begin = row.begin;
            if (row.end > seen.end) seen.end = row.end;
        }
        load_slices(w, block_part(w, split, cell) + w->kv->v_offset, seen.begin - cell, seen.end - seen.begin);
        int32_t passes = (n + LANES_BLOCK - 1) / LANES_BLOCK;
        for (size_t channel = 0; channel < w->result_stride; channel += MF_LANES) {
            for (int32_t i = 0; i < passes; i++) {
                int32_t q0 = some.begin + n * i / passes, q1 = some.begin + n * (i + 1) / passes;
                weigh_block(w, q0, q1 - q0, block, w->cells + channel * MF_KV_BLOCK, channel);
            }
        }
    }
}

// mf_attention_merge of a split's m, l and o into a state.
static void merge_split(const attention_work *w, int32_t q, float *state) {
    const float *o = w->result + (size_t)q * w->result_stride;
    float *to = state + 2;
    int32_t head_dim = w->head_dim;
    float m = w->largest[q], l = w->sum[q];
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
    int32_t d = 0;
    for (; d + MF_LANES <= head_dim; d += MF_LANES)
        lanes_store(to + d, lanes_fma(lanes_load(to + d), old, lanes_mul(lanes_load(o + d), fresh)));
    if (d < head_dim)
        lanes_store_part(to + d, lanes_fma(lanes_load_part(to + d, head_dim - d), old, lanes_mul(lanes_load(o + d), fresh)),
                         head_dim - d);
}

static void attend_split(attention_work *w, int32_t split) {
    const mf_attention_piece *p = w->p;
    for (int32_t r = 0; r < p->n_rows; r++) w->range[r] = mf_attention_cells(p, r, split);
    if (queries_of(w, 0, MF_ATTENTION_SPLIT).end == 0) return;
    scores(w, split);
    for (int32_t q = 0; q < w->queries; q++) {
        mf_cell_range range = w->range[q / p->n_group];
        if (range.begin < range.end) exponentials(w, q, range);
    }
    memset(w->result, 0, (size_t)w->queries * w->result_stride * sizeof *w->result);
    results(w, split);
    for (int32_t q = 0; q < w->queries; q++) {
        mf_cell_range range = w->range[q / p->n_group];
        if (range.begin < range.end) merge_split(w, q, p->state + (size_t)q * mf_attention_state_floats(w->head_dim));
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
                        .cells = scratch + layout.cells};
    for (int32_t r = 0; r < p->n_rows; r++) {
        int64_t n = (int64_t)p->n_group * head_dim;
        vector_scale(p->q + (size_t)r * p->q_stride, p->scale, w.query + (int64_t)r * n, n);
    }
    for (int32_t q = 0; q < queries; q++) p->state[(size_t)q * mf_attention_state_floats(head_dim) + 1] = 0.0f;
    for (int32_t split = p->split0; split < p->split1; split++) attend_split(&w, split);
}
