// Attention over the workers: tiles of query rows x KV heads; where those are few, the splits of 256 cells become pieces of their own
// and whoever finishes the last one merges them in order.
#include <string.h>

#include "backend/cpu/device.h"

static int32_t splits_for(int32_t last_cell) { return last_cell / MF_ATTENTION_SPLIT + 1; }

void mf_cpu_plan_attention(cpu_run *run) {
    const mf_step *step = run->step;
    cpu_scratch *s = &run->device->scratch;
    run->n_splits = 0;
    for (int32_t r = 0; r < step->n_rows; r++) {
        int32_t n = splits_for(step->cell[r]);
        if (n > run->n_splits) run->n_splits = n;
    }
    run->split = step->n_rows <= s->split_rows && run->n_splits > 1 && mf_pool_size(run->device->pool) > 1;
    int32_t most = run->split ? 1 : MF_ATTENTION_ROWS;
    cpu_tile *t = s->tiles;
    *t = (cpu_tile){0, 0};
    for (int32_t r = 0; r < step->n_rows; r++) {
        bool follows = r == 0 || (step->seq[r] == step->seq[r - 1] && step->cell[r] == step->cell[r - 1] + 1);
        if (!follows || t->n_rows == most) *++t = (cpu_tile){r, 0};
        t->n_rows++;
    }
    run->n_tiles = (int32_t)(t - s->tiles) + 1;
    if (run->split) memset(s->split_done, 0, (size_t)step->n_rows * (size_t)s->n_head_kv * sizeof *s->split_done);
}

int32_t mf_cpu_attention_pieces(const cpu_run *run, const mf_node *node) {
    return run->n_tiles * node->u.attention.n_head_kv * (run->split ? run->n_splits : 1);
}

static void finish(const cpu_run *run, const mf_node *node, const cpu_tile *tile, int32_t kv_head, const float *state) {
    const mf_attention_params *a = &node->u.attention;
    const mf_value *out = &run->program->values[node->dst];
    int32_t group = a->n_head / a->n_head_kv;
    for (int32_t r = 0; r < tile->n_rows; r++) {
        float *row = (float *)((char *)mf_value_data(run->program, node->dst) + (tile->first_row + r) * out->nb[1]);
        for (int32_t g = 0; g < group; g++)
            mf_attention_finish(state + (size_t)(r * group + g) * (size_t)(a->head_dim + 2),
                                row + (size_t)(kv_head * group + g) * a->head_dim, a->head_dim);
    }
}

static mf_attention_piece piece_of(const cpu_run *run, const mf_node *node, const cpu_tile *tile, int32_t kv_head) {
    const mf_attention_params *a = &node->u.attention;
    const mf_value *q = &run->program->values[node->src[0]];
    int32_t group = a->n_head / a->n_head_kv;
    size_t q_stride = (size_t)q->nb[2] / sizeof(float);
    const float *q0 = mf_value_data(run->program, node->src[0]);
    return (mf_attention_piece){
        .kv = run->step->kv,
        .table = run->step->table[run->step->seq[tile->first_row]],
        .layer = node->layer,
        .kv_head = kv_head,
        .n_rows = tile->n_rows,
        .n_group = group,
        .q = q0 + (size_t)tile->first_row * q_stride + (size_t)kv_head * (size_t)group * (size_t)a->head_dim,
        .q_stride = q_stride,
        .cell = run->step->cell + tile->first_row,
        .scale = a->scale,
        .softcap = a->softcap,
        .window = a->window,
    };
}

void mf_cpu_attention_piece(const cpu_run *run, const mf_node *node, int32_t piece, int worker) {
    const mf_attention_params *a = &node->u.attention;
    const cpu_scratch *s = &run->device->scratch;
    int32_t n_splits = run->split ? run->n_splits : 1, split = piece % n_splits, unit = piece / n_splits;
    int32_t kv_head = unit % a->n_head_kv;
    const cpu_tile *tile = &s->tiles[unit / a->n_head_kv];
    size_t state_floats = (size_t)(a->n_head / a->n_head_kv) * (size_t)(a->head_dim + 2);
    float *mine = s->worker + (size_t)worker * s->worker_floats;
    mf_attention_piece p = piece_of(run, node, tile, kv_head);
    p.scratch = mine + state_floats * MF_ATTENTION_ROWS;
    if (!run->split) {
        p.split1 = splits_for(p.cell[p.n_rows - 1]);
        p.state = mine;
        run->device->k->attention(&p);
        finish(run, node, tile, kv_head, mine);
        return;
    }
    float *states = s->split_state + (size_t)unit * (size_t)s->max_splits * state_floats;
    int32_t own_splits = splits_for(p.cell[0]);
    if (split >= own_splits) return;
    p.split0 = split, p.split1 = split + 1;
    p.state = states + (size_t)split * state_floats;
    run->device->k->attention(&p);
    if (__atomic_add_fetch(&s->split_done[unit], 1, __ATOMIC_ACQ_REL) < own_splits) return;
    s->split_done[unit] = 0;
    for (int32_t i = 1; i < own_splits; i++)
        run->device->k->attention_merge(states, states + (size_t)i * state_floats, a->n_head / a->n_head_kv, a->head_dim);
    finish(run, node, tile, kv_head, states);
}
