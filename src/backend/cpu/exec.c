// Running a span of nodes: all workers walk the groups together; inside a group each takes the pieces of its stretch and then helps the
// others, and one barrier stands between groups. Groups with little to do are run by whoever comes last to the barrier.
#include <string.h>

#include "backend/cpu/device.h"
#include "base/mem.h"

static size_t carve(size_t *at, size_t bytes) {
    size_t here = *at;
    *at = mf_align_up(here + bytes, 64);
    return here;
}

// The needs of a program: what the largest node asks of a worker, and of split attention.
typedef struct needs {
    size_t worker_floats, state_floats;
    int32_t n_head_kv;
} needs;

static needs program_needs(const mf_program *p) {
    needs n = {0};
    for (int32_t i = 0; i < p->n_nodes; i++) {
        const mf_node *node = &p->nodes[i];
        size_t floats = 0;
        if (node->op == MF_OP_ATTENTION) {
            const mf_attention_params *a = &node->u.attention;
            int32_t group = a->n_head / a->n_head_kv;
            size_t state = (size_t)group * (size_t)(a->head_dim + 2);
            floats = state * MF_ATTENTION_ROWS + mf_attention_scratch_floats(group, a->head_dim);
            if (state > n.state_floats) n.state_floats = state;
            if (a->n_head_kv > n.n_head_kv) n.n_head_kv = a->n_head_kv;
        } else if (node->src[0] >= 0) {
            const mf_value *v = &p->values[node->src[0]];
            floats = (size_t)v->ne[0] * (size_t)(v->ne[1] > 0 ? v->ne[1] : 1);
        }
        if (floats > n.worker_floats) n.worker_floats = floats;
    }
    n.worker_floats = mf_align_up(n.worker_floats + 16, 16);
    return n;
}

// Attention is cut by splits when there are fewer (row, KV head) pairs than this.
static int32_t split_rows(const cpu_device *d, int32_t n_head_kv) {
    int32_t pairs = 8 * mf_pool_size(d->pool);
    return n_head_kv > 0 ? (pairs + n_head_kv - 1) / n_head_kv : 0;
}

static size_t lay_out(const cpu_device *d, const mf_program *p, cpu_scratch *s, uintptr_t base) {
    needs n = program_needs(p);
    size_t at = 0, threads = (size_t)mf_pool_size(d->pool), nodes = (size_t)p->n_nodes;
    s->program = p;
    s->n_head_kv = n.n_head_kv;
    s->split_rows = split_rows(d, n.n_head_kv);
    s->max_splits = p->max_cells / MF_ATTENTION_SPLIT + 1;
    s->worker_floats = n.worker_floats;
    size_t pairs = (size_t)s->split_rows * (size_t)n.n_head_kv;
    s->tasks = (cpu_task *)(base + carve(&at, nodes * sizeof *s->tasks));
    s->groups = (cpu_group *)(base + carve(&at, nodes * sizeof *s->groups));
    s->counters = (int *)(base + carve(&at, threads * nodes * sizeof *s->counters));
    s->tiles = (cpu_tile *)(base + carve(&at, (size_t)p->max_rows * sizeof *s->tiles));
    s->worker = (float *)(base + carve(&at, threads * n.worker_floats * sizeof(float)));
    s->split_state = (float *)(base + carve(&at, pairs * (size_t)s->max_splits * n.state_floats * sizeof(float)));
    s->split_done = (int *)(base + carve(&at, pairs * sizeof *s->split_done));
    return at;
}

size_t mf_cpu_scratch_bytes(const mf_device *device, const mf_program *program) {
    cpu_scratch s = {0};
    return lay_out((const cpu_device *)device, program, &s, 0);
}

static bool reserve(cpu_device *d, size_t bytes, mf_error *err) {
    mf_device *device = &d->device;
    d->scratch.program = NULL; // a program may come to stand where a freed one stood
    if (bytes <= d->scratch.bytes) return true;
    void *memory = mf_cpu_alloc(device, bytes);
    if (!memory) return mf_fail_memory(err, bytes, "the CPU's working memory");
    mf_cpu_release(device, d->scratch.memory, d->scratch.bytes);
    d->scratch = (cpu_scratch){.memory = memory, .bytes = bytes};
    return true;
}

bool mf_cpu_reserve(mf_device *device, size_t bytes, mf_error *err) {
    cpu_device *d = (cpu_device *)device;
    pthread_mutex_lock(&d->turn);
    bool ok = reserve(d, bytes, err);
    pthread_mutex_unlock(&d->turn);
    return ok;
}

// Piece i of a group: one of a node's.
static void run_piece(const cpu_run *run, const cpu_group *group, int32_t i, int worker) {
    const cpu_task *tasks = run->device->scratch.tasks;
    int32_t node = group->first_node;
    while (i >= tasks[node].n_pieces) i -= tasks[node++].n_pieces;
    mf_cpu_run_piece(run, &run->program->nodes[node], &tasks[node], i, worker);
}

static bool interrupted(const cpu_run *run) {
    return run->step->interrupt && atomic_load_explicit(run->step->interrupt, memory_order_relaxed);
}

static void run_group(const cpu_run *run, int32_t group, int worker) {
    const cpu_scratch *s = &run->device->scratch;
    const cpu_group *g = &s->groups[group];
    const size_t stride = (size_t)run->program->n_nodes;
    for (int i, helped = 0; !interrupted(run) && (i = mf_pool_take(run->device->pool, s->counters + group, stride,
                                                                   g->n_pieces, worker, &helped)) >= 0;) {
        run_piece(run, g, i, worker);
    }
}

// Groups from `first` on that are one worker's business.
typedef struct alone {
    cpu_run *run;
    int32_t first, end;
} alone;

static alone alone_from(cpu_run *run, int32_t first) {
    alone a = {run, first, first};
    while (a.end < run->n_groups && run->device->scratch.groups[a.end].alone) a.end++;
    return a;
}

static void run_alone(void *arg, int worker) {
    const alone *a = arg;
    // A worker that left pieces undone has seen the interrupt before it came to the barrier, so the last one sees it too.
    a->run->stopped = interrupted(a->run);
    for (int32_t g = a->first; g < a->end && !a->run->stopped; g++) {
        const cpu_group *group = &a->run->device->scratch.groups[g];
        for (int32_t i = 0; i < group->n_pieces; i++) run_piece(a->run, group, i, worker);
    }
}

static void run_worker(void *arg, int worker) {
    cpu_run *run = arg;
    for (int32_t g = 0; g < run->n_groups && !run->stopped; g++) {
        alone a = alone_from(run, g);
        g = a.end;
        if (g > 0) mf_pool_barrier(run->device->pool, run_alone, &a, worker);
        if (g < run->n_groups && !run->stopped) run_group(run, g, worker);
    }
}

static bool plan_span(cpu_run *run, int32_t first, int32_t count, mf_error *err) {
    cpu_scratch *s = &run->device->scratch;
    const mf_node *nodes = run->program->nodes;
    for (int32_t i = first; i < first + count; i++) {
        if (i == first || nodes[i].group != nodes[i - 1].group) {
            s->groups[run->n_groups++] = (cpu_group){.first_node = i, .alone = run->step->n_rows == 1};
        }
        cpu_group *group = &s->groups[run->n_groups - 1];
        s->tasks[i] = (cpu_task){0};
        if (!mf_cpu_plan_node(run, &nodes[i], &s->tasks[i], err)) return false;
        group->n_pieces += s->tasks[i].n_pieces;
        if (nodes[i].op == MF_OP_MATMUL || nodes[i].op == MF_OP_ATTENTION) group->alone = false;
    }
    for (int w = 0; w < mf_pool_size(run->device->pool); w++) {
        memset(s->counters + (size_t)w * (size_t)run->program->n_nodes, 0, (size_t)run->n_groups * sizeof *s->counters);
    }
    return true;
}

static bool run_span(cpu_device *d, const mf_program *program, int32_t first, int32_t count, const mf_step *step,
                     mf_error *err) {
    cpu_scratch *s = &d->scratch;
    if (s->program != program) {
        size_t bytes = lay_out(d, program, s, (uintptr_t)s->memory);
        if (bytes > s->bytes) {
            s->program = NULL;
            return mf_fail(err, MF_ERR_INTERNAL, "the CPU's working memory is %zu bytes; the program needs %zu", s->bytes,
                           bytes);
        }
    }
    cpu_run run = {.device = d, .program = program, .step = step};
    mf_cpu_plan_attention(&run);
    if (!plan_span(&run, first, count, err)) return false;
    mf_pool_run(d->pool, run_worker, &run);
    return !interrupted(&run) || mf_fail(err, MF_ERR_CANCELLED, "the step was interrupted");
}

bool mf_cpu_run_span(mf_device *device, const mf_program *program, int32_t first, int32_t count, const mf_step *step,
                     mf_error *err) {
    cpu_device *d = (cpu_device *)device;
    pthread_mutex_lock(&d->turn);
    bool ok = run_span(d, program, first, count, step, err);
    pthread_mutex_unlock(&d->turn);
    return ok;
}
