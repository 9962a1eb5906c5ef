// A graph as text: DOT for graphviz, JSON for programs. Both show it as it runs: behind the passes, with devices and groups.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "graph/graph.h"

static const char *symbol(int64_t dim) { return dim == MF_DIM_ROWS ? "rows" : dim == MF_DIM_OUTS ? "outs" : NULL; }

// Trailing ones say nothing.
static int rank(const mf_value *v) {
    int n = 4;
    while (n > 1 && v->ne[n - 1] == 1) n--;
    return n;
}

static const char *device_of(const mf_device_list *devices, const mf_node *n) {
    return devices && n->device < devices->n ? devices->device[n->device]->class->name : "none";
}

// Per value: the node that makes its storage, -1 where none does. NULL when memory is out.
static int32_t *makers(const mf_graph *g) {
    int32_t *maker = mf_alloc(g->values.len, sizeof *maker);
    for (size_t v = 0; maker && v < g->values.len; v++) maker[v] = -1;
    for (size_t i = 0; maker && i < g->nodes.len; i++) maker[g->nodes.data[i].dst] = (int32_t)i;
    for (size_t v = 0; maker && v < g->values.len; v++)
        if (maker[v] < 0) maker[v] = maker[g->values.data[v].root];
    return maker;
}

// ---- An operation's payload

// One name and value of a payload: an integer, a real or a word.
typedef struct field {
    const char *name;
    enum {
        FIELD_INT,
        FIELD_REAL,
        FIELD_WORD
    } kind;
    int64_t integer;
    double real;
    const char *word;
} field;

#define MAX_FIELDS 6

static field integer(const char *name, int64_t value) { return (field){name, FIELD_INT, value, 0, NULL}; }
static field real(const char *name, double value) { return (field){name, FIELD_REAL, 0, value, NULL}; }

static int rope_fields(const mf_rope_params *r, field out[MAX_FIELDS]) {
    out[0] = integer("n_dims", r->n_dims);
    out[1] = (field){"pairs", FIELD_WORD, 0, 0, r->interleaved ? "interleaved" : "halves"};
    out[2] = real("magnitude", r->magnitude);
    return 3;
}

static int attention_fields(const mf_attention_params *a, field out[MAX_FIELDS]) {
    out[0] = integer("n_head", a->n_head), out[1] = integer("n_head_kv", a->n_head_kv);
    out[2] = integer("head_dim", a->head_dim), out[3] = real("scale", (double)a->scale);
    int n = 4;
    if (a->softcap != 0) out[n++] = real("softcap", (double)a->softcap);
    if (a->window) out[n++] = integer("window", a->window);
    return n;
}

static int fields_of(const mf_node *n, field out[MAX_FIELDS]) {
    switch (n->op) {
    case MF_OP_RMS_NORM:
    case MF_OP_NORM_QUANTIZE: out[0] = real("eps", (double)n->u.eps); return 1;
    case MF_OP_QK_NORM:
        out[0] = real("eps", (double)n->u.qk_norm.eps), out[1] = integer("head_dim", n->u.qk_norm.head_dim);
        return 2;
    case MF_OP_SCALE: out[0] = real("scale", (double)n->u.scale); return 1;
    case MF_OP_ROPE:
    case MF_OP_ROPE_TABLE:
    case MF_OP_ROPE_STORE: return rope_fields(&n->u.rope, out);
    case MF_OP_ATTENTION: return attention_fields(&n->u.attention, out);
    default: return 0;
    }
}

// ---- DOT

// Text inside a quoted DOT string. Names come from files: quotes, backslashes, control characters and broken UTF-8 must not get out.
static void dot_text(mf_buf *out, const char *text) {
    size_t len = strlen(text);
    char *copy = mf_copy_text(text, len);
    if (!copy) {
        out->failed = true;
        return;
    }
    len = mf_utf8_clean(copy, len);
    for (size_t i = 0; i < len; i++) {
        if (copy[i] == '"' || copy[i] == '\\') mf_buf_char(out, '\\');
        mf_buf_char(out, copy[i]);
    }
    free(copy);
}

static void dot_shape(mf_buf *out, const mf_value *v) {
    for (int i = 0; i < rank(v); i++) {
        const char *name = symbol(v->ne[i]);
        mf_buf_text(out, i ? " x " : "");
        if (name)
            mf_buf_text(out, name);
        else
            mf_buf_printf(out, "%" PRId64, v->ne[i]);
    }
}

static void dot_weight(mf_buf *out, const char *role, const mf_weight *w) {
    if (!w) return;
    mf_buf_printf(out, "\\n%s", role);
    dot_text(out, w->name);
    mf_buf_printf(out, " %s %" PRId64 " x %" PRId64, mf_type_name(w->type), w->n_in, w->n_out);
}

static void dot_fields(mf_buf *out, const mf_node *n) {
    field fields[MAX_FIELDS];
    int count = fields_of(n, fields);
    for (int i = 0; i < count; i++) {
        mf_buf_printf(out, "%s%s ", i ? ", " : "\\n", fields[i].name);
        if (fields[i].kind == FIELD_INT) mf_buf_printf(out, "%" PRId64, fields[i].integer);
        if (fields[i].kind == FIELD_REAL) mf_buf_printf(out, "%.6g", fields[i].real);
        if (fields[i].kind == FIELD_WORD) mf_buf_text(out, fields[i].word);
    }
}

static void dot_node(const mf_graph *g, const mf_device_list *devices, size_t i, mf_buf *out) {
    const mf_node *n = &g->nodes.data[i];
    const mf_value *v = &g->values.data[n->dst];
    mf_buf_printf(out, "n%zu [label=\"%s\\n", i, mf_op_name(n->op));
    dot_text(out, v->name);
    mf_buf_text(out, "\\n");
    dot_shape(out, v);
    mf_buf_printf(out, " %s", mf_format_name(v->format));
    dot_weight(out, "", n->weight);
    dot_weight(out, "bias ", n->bias);
    dot_fields(out, n);
    mf_buf_printf(out, "\\n%s, group %d\"];\n", device_of(devices, n), n->group);
}

static void dot_edges(const mf_graph *g, const int32_t *maker, size_t i, mf_buf *out) {
    const mf_node *n = &g->nodes.data[i];
    for (int s = 0; s < MF_MAX_SRC; s++) {
        if (n->src[s] < 0 || maker[n->src[s]] < 0) continue;
        const mf_value *v = &g->values.data[n->src[s]];
        mf_buf_printf(out, "  n%d -> n%zu", maker[n->src[s]], i);
        if (v->root != n->src[s]) { // what the view makes of it
            mf_buf_text(out, " [label=\"");
            dot_text(out, v->name);
            mf_buf_text(out, "\\n");
            dot_shape(out, v);
            mf_buf_text(out, "\"]");
        }
        mf_buf_text(out, ";\n");
    }
}

// The nodes of one layer, in a cluster of their own; those outside the layers (-1) stand free.
static void dot_layer(const mf_graph *g, const mf_device_list *devices, int32_t layer, mf_buf *out) {
    if (layer >= 0) mf_buf_printf(out, "  subgraph cluster_%d {\n    label=\"layer %d\";\n", layer, layer);
    for (size_t i = 0; i < g->nodes.len; i++) {
        if (g->nodes.data[i].layer != layer) continue;
        mf_buf_text(out, layer >= 0 ? "    " : "  ");
        dot_node(g, devices, i, out);
    }
    if (layer >= 0) mf_buf_text(out, "  }\n");
}

bool mf_graph_dot(const mf_graph *g, const mf_device_list *devices, mf_buf *out) {
    int32_t *maker = makers(g), last = -1;
    if (!maker) return false;
    for (size_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i].layer > last) last = g->nodes.data[i].layer;
    mf_buf_text(out, "digraph minfer {\n  node [shape=box, fontname=\"monospace\"];\n");
    for (int32_t layer = -1; layer <= last; layer++) dot_layer(g, devices, layer, out);
    for (size_t i = 0; i < g->nodes.len; i++) dot_edges(g, maker, i, out);
    if (g->output >= 0 && maker[g->output] >= 0)
        mf_buf_printf(out, "  output [shape=ellipse];\n  n%d -> output;\n", maker[g->output]);
    mf_buf_text(out, "}\n");
    free(maker);
    return !out->failed;
}

// ---- JSON

static void json_value(mf_json_writer *w, const mf_graph *g, mf_ref ref) {
    const mf_value *v = &g->values.data[ref];
    mf_json_begin(w, '{');
    mf_json_add_int(w, "value", ref);
    mf_json_add_text(w, "name", v->name);
    mf_json_add_text(w, "format", mf_format_name(v->format));
    mf_json_key(w, "shape");
    mf_json_begin(w, '[');
    for (int i = 0; i < rank(v); i++) {
        const char *name = symbol(v->ne[i]);
        if (name)
            mf_json_string(w, mf_str_of(name));
        else
            mf_json_int(w, v->ne[i]);
    }
    mf_json_end(w, ']');
    if (v->root != ref) {
        mf_json_add_int(w, "view_of", v->root);
        mf_json_add_int(w, "offset", v->offset);
        mf_json_key(w, "strides");
        mf_json_begin(w, '[');
        for (int i = 0; i < rank(v); i++) mf_json_int(w, v->nb[i]);
        mf_json_end(w, ']');
    }
    mf_json_end(w, '}');
}

static void json_weight(mf_json_writer *w, const char *key, const mf_weight *weight) {
    if (!weight) return;
    mf_json_key(w, key);
    mf_json_begin(w, '{');
    mf_json_add_text(w, "name", weight->name);
    mf_json_add_text(w, "type", mf_type_name(weight->type));
    mf_json_key(w, "shape");
    mf_json_begin(w, '[');
    mf_json_int(w, weight->n_in);
    mf_json_int(w, weight->n_out);
    mf_json_end(w, ']');
    mf_json_end(w, '}');
}

static void json_params(mf_json_writer *w, const mf_node *n) {
    field fields[MAX_FIELDS];
    int count = fields_of(n, fields);
    if (count == 0) return;
    mf_json_key(w, "params");
    mf_json_begin(w, '{');
    for (int i = 0; i < count; i++) {
        mf_json_key(w, fields[i].name);
        if (fields[i].kind == FIELD_INT) mf_json_int(w, fields[i].integer);
        if (fields[i].kind == FIELD_REAL) mf_json_real(w, fields[i].real);
        if (fields[i].kind == FIELD_WORD) mf_json_string(w, mf_str_of(fields[i].word));
    }
    mf_json_end(w, '}');
}

// The members of a node's object.
static void json_node(mf_json_writer *w, const mf_graph *g, const mf_device_list *devices, size_t i) {
    const mf_node *n = &g->nodes.data[i];
    mf_json_add_int(w, "node", (int64_t)i);
    mf_json_add_text(w, "op", mf_op_name(n->op));
    if (n->layer >= 0) mf_json_add_int(w, "layer", n->layer);
    mf_json_add_text(w, "device", device_of(devices, n));
    mf_json_add_int(w, "group", n->group);
    mf_json_key(w, "dst");
    json_value(w, g, n->dst);
    mf_json_key(w, "src");
    mf_json_begin(w, '[');
    for (int s = 0; s < MF_MAX_SRC; s++)
        if (n->src[s] >= 0) json_value(w, g, n->src[s]);
    mf_json_end(w, ']');
    json_weight(w, "weight", n->weight);
    json_weight(w, "bias", n->bias);
    json_params(w, n);
}

bool mf_graph_json(const mf_graph *g, const mf_device_list *devices, const char *kind, mf_buf *out) {
    mf_json_writer w = {.out = out};
    mf_json_begin(&w, '{');
    mf_json_add_text(&w, "kind", kind);
    mf_json_add_int(&w, "n_nodes", (int64_t)g->nodes.len);
    mf_json_add_int(&w, "n_groups", g->nodes.len ? g->nodes.data[g->nodes.len - 1].group + 1 : 0);
    mf_json_add_int(&w, "output", g->output);
    mf_json_key(&w, "devices");
    mf_json_begin(&w, '[');
    for (int32_t d = 0; devices && d < devices->n; d++) {
        const mf_device *device = devices->device[d];
        const char *text = device->class->describe ? device->class->describe(device) : device->class->name;
        mf_json_string(&w, mf_str_of(text));
    }
    mf_json_end(&w, ']');
    mf_json_key(&w, "nodes");
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < g->nodes.len; i++) {
        w.indent = 1; // a line a node, for grep and diff
        mf_json_begin(&w, '{');
        w.indent = 0;
        json_node(&w, g, devices, i);
        mf_json_end(&w, '}');
    }
    mf_json_end(&w, ']');
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
    return !out->failed;
}
