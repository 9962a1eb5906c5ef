// Whole runs: the input is a list of edits of a small model's file; the file is opened as any other, asked something, and steps until a
// few tokens came. Edits keep the file's structure, so that what is read behind the reader of GGUF is reached: hyperparameters,
// vocabularies, templates, weights. Whatever is refused must be refused with a sentence, and what is answered must be answered twice
// with the same tokens.
#define _GNU_SOURCE // memfd_create
#include <minfer.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/ggufcopy.h"

enum {
    MAX_TOKENS = 3
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const bases[] = {"llama3-f16", "qwen3-f16", "llama-f32", "qwen2-f32", "qwen2-mix", "llama-mix"};
#define N_BASES (sizeof bases / sizeof bases[0])
static mf_gguf *base[N_BASES];

// ---- Reading the input

typedef struct input {
    const uint8_t *at, *end;
} input;

static uint8_t byte(input *in) { return in->at < in->end ? *in->at++ : 0; }

static uint64_t bytes(input *in, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value |= (uint64_t)byte(in) << 8 * i;
    return value;
}

static const char *pick(input *in, const char *const *words, size_t n) { return words[byte(in) % n]; }

// Numbers that stand at an edge of something, small ones, and any.
static uint64_t number(input *in) {
    static const uint64_t edges[] = {31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     65,
                                     255,
                                     256,
                                     1023,
                                     1024,
                                     1025,
                                     0xffff,
                                     (1U << 20) + 1,
                                     1U << 24,
                                     (1U << 24) + 1,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     (uint64_t)1 << 32,
                                     INT64_MAX,
                                     UINT64_MAX,
                                     0x3f800000, // 1, NaN, infinities, the smallest and the largest as floats and doubles
                                     0x7fc00000,
                                     0x7f800000,
                                     0xff800000,
                                     1,
                                     0x7f7fffff,
                                     0xbf800000,
                                     0x7ff8000000000000,
                                     0x7ff0000000000000};
    uint8_t how = byte(in);
    if (how < sizeof edges / sizeof edges[0]) return edges[how];
    return how < 200 ? how - 30U : bytes(in, 8);
}

// ---- Edits

static const char *const suffixes[] = {"context_length",
                                       "embedding_length",
                                       "block_count",
                                       "feed_forward_length",
                                       "attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "attention.layer_norm_rms_epsilon",
                                       "attention.scale",
                                       "attention.causal",
                                       "attention.sliding_window",
                                       "logit_scale",
                                       "expert_count",
                                       "rope.dimension_count",
                                       "rope.freq_base",
                                       "rope.scale_linear",
                                       "rope.scaling.type",
                                       "rope.scaling.factor",
                                       "rope.scaling.attn_factor",
                                       "rope.scaling.yarn_beta_fast",
                                       "rope.scaling.yarn_beta_slow",
                                       "rope.scaling.original_context_length",
                                       "vocab_size"};

static const char *const keys[] = {"general.architecture",
                                   "general.alignment",
                                   "general.sampling.temp",
                                   "general.sampling.top_k",
                                   "general.sampling.penalty_last_n",
                                   "general.sampling.mirostat",
                                   "split.count",
                                   "split.no",
                                   "split.tensors.count",
                                   "tokenizer.ggml.model",
                                   "tokenizer.ggml.pre",
                                   "tokenizer.ggml.tokens",
                                   "tokenizer.ggml.token_type",
                                   "tokenizer.ggml.scores",
                                   "tokenizer.ggml.merges",
                                   "tokenizer.ggml.bos_token_id",
                                   "tokenizer.ggml.eos_token_id",
                                   "tokenizer.ggml.eot_token_id",
                                   "tokenizer.ggml.padding_token_id",
                                   "tokenizer.ggml.add_bos_token",
                                   "tokenizer.ggml.add_space_prefix",
                                   "tokenizer.chat_template",
                                   "tokenizer.chat_template.tool_use"};

static const char *const words[] = {"llama",
                                    "qwen2",
                                    "qwen3",
                                    "gpt2",
                                    "default",
                                    "llama-bpe",
                                    "smollm",
                                    "yarn",
                                    "linear",
                                    "longrope",
                                    "none",
                                    "<|im_end|>",
                                    "h e",
                                    " ",
                                    "\xff\xfe",
                                    "<|im_start|>",
                                    "\xe2\x96\x81",
                                    "",
                                    "{{ messages[0]['content'] * 9 }}",
                                    "{% for m in messages %}{{ m.content }}{% endfor %}"};

typedef struct edit {
    const mf_gguf_value *value; // the value that is replaced, left out or written twice; NULL: none
    const char *key;            // a key that is added; NULL: none
    uint8_t how, kind;
    input arguments;
} edit;

static size_t kind_bytes(uint32_t kind) {
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kind < sizeof sizes ? sizes[kind] : 0;
}

// The bytes of a value of some kind as the input makes it up; arrays have elements of one kind.
static void made_up(input *in, uint32_t kind, mf_buf *out) {
    uint64_t n = number(in);
    if (kind_bytes(kind)) {
        mf_buf_add(out, &n, kind_bytes(kind));
    } else if (kind == MF_GGUF_STRING) {
        const char *word = pick(in, words, sizeof words / sizeof words[0]);
        n = strlen(word);
        mf_buf_add(out, &n, sizeof n);
        mf_buf_add(out, word, (size_t)n);
    } else if (kind == MF_GGUF_ARRAY) {
        uint32_t item = byte(in) % 13;
        if (item == MF_GGUF_ARRAY) item = MF_GGUF_STRING;
        uint64_t count = byte(in) % 40;
        mf_buf_add(out, &item, sizeof item);
        mf_buf_add(out, &count, sizeof count);
        for (uint64_t i = 0; i < count; i++) made_up(in, item, out);
    }
}

static void put_made_up(ggufgen *g, mf_str key, uint32_t kind, input arguments) {
    mf_buf raw = {0};
    made_up(&arguments, kind, &raw);
    ggufgen_value(g, key, kind, raw.data ? raw.data : "", raw.len);
    free(raw.data);
}

// An array of numbers, or a text, with some of its bytes changed.
static void put_poked(ggufgen *g, const mf_gguf_value *v, input arguments) {
    uint8_t *copy = malloc(v->size ? v->size : 1);
    if (!copy) abort();
    memcpy(copy, v->data, v->size);
    size_t first = v->kind == MF_GGUF_STRING ? 8 : 0;
    for (int i = byte(&arguments) % 8; i >= 0 && v->size > first; i--)
        copy[first + bytes(&arguments, 4) % (v->size - first)] = byte(&arguments);
    mf_gguf_value poked = *v;
    poked.data = copy;
    ggufcopy_value(g, &poked);
    free(copy);
}

static void put_value(ggufgen *g, const mf_gguf_value *v, const edit *edits, int n) {
    for (int i = 0; i < n; i++) {
        const edit *e = &edits[i];
        if (e->value != v) continue;
        switch (e->how % 5) {
        case 0: return; // left out
        case 1: ggufcopy_value(g, v); break;
        case 2: put_made_up(g, v->key, v->kind, e->arguments); return;
        case 3: put_made_up(g, v->key, e->kind, e->arguments); return;
        default: put_poked(g, v, e->arguments); return;
        }
    }
    ggufcopy_value(g, v);
}

// A tensor as it is, or with another type, other dimensions, another name, changed bytes, or not at all.
static void put_tensor(ggufgen *g, const mf_gguf_tensor *t, input *in) {
    char name[300];
    uint64_t ne[4];
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
    memcpy(ne, t->ne, sizeof ne);
    uint8_t *data = malloc(t->size);
    if (!data) abort();
    memcpy(data, t->data, t->size);
    uint32_t type = t->type, n_dims = t->n_dims;
    switch (byte(in) % 6) {
    case 0: type = byte(in) % 42; break;
    case 1: ne[byte(in) % n_dims] = number(in); break;
    case 2: n_dims = byte(in) % 5; break;
    case 3: snprintf(name, sizeof name, "blk.%d.%s", byte(in) % 4, pick(in, words, sizeof words / sizeof words[0])); break;
    case 4: free(data); return;
    default:
        for (int i = byte(in) % 8; i >= 0; i--) data[bytes(in, 4) % t->size] = byte(in);
    }
    ggufgen_tensor(g, name, type, n_dims, ne, data, t->size);
    free(data);
}

static uint8_t *edited(const mf_gguf *file, input in, size_t *size) {
    const char *arch = "llama";
    char added[64];
    mf_str name = {0};
    if (mf_gguf_get_str(file, "general.architecture", &name, NULL) && mf_str_is(name, "qwen2")) arch = "qwen2";
    if (mf_str_is(name, "qwen3")) arch = "qwen3";
    ggufgen g;
    ggufgen_init(&g);
    edit edits[8];
    int n = byte(&in) % 9;
    for (int i = 0; i < n; i++) {
        edits[i] = (edit){.how = byte(&in), .kind = byte(&in) % 13};
        uint8_t which = byte(&in);
        if (edits[i].how < 128) {
            edits[i].value = mf_gguf_value_at(file, which % mf_gguf_n_values(file));
        } else {
            bool own = edits[i].how & 1;
            snprintf(added, sizeof added, "%s.%s", arch, suffixes[which % (sizeof suffixes / sizeof suffixes[0])]);
            edits[i].key = own ? added : keys[which % (sizeof keys / sizeof keys[0])];
            edits[i].value = mf_gguf_find(file, edits[i].key);
            if (edits[i].value) edits[i].how = 2 + edits[i].how % 3;
        }
        edits[i].arguments = (input){in.at, in.at + 12 < in.end ? in.at + 12 : in.end};
        in.at = edits[i].arguments.end;
        if (edits[i].key && !edits[i].value) put_made_up(&g, mf_str_of(edits[i].key), edits[i].kind, edits[i].arguments);
    }
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) put_value(&g, mf_gguf_value_at(file, i), edits, n);
    size_t touched = byte(&in) % (2 * mf_gguf_n_tensors(file)); // half of the time none
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++)
        if (i == touched)
            put_tensor(&g, mf_gguf_tensor_at(file, i), &in);
        else
            ggufcopy_tensor(&g, mf_gguf_tensor_at(file, i));
    uint8_t *out = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return out;
}

// ---- The run

static void need_sentence(const minfer_error *error) {
    if (error->code == MINFER_OK || !error->text[0]) abort();
}

// Up to MAX_TOKENS tokens of an answer; how many there were, or -1 with a refusal.
static int answer(minfer_engine *engine, const minfer_model *model, int32_t *tokens, minfer_error *error) {
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.max_tokens = MAX_TOKENS;
    minfer_sequence *s = minfer_sequence_new(engine, &o, error);
    const minfer_message messages[] = {{"system", "Be brief."}, {"user", "the <|im_end|> bread \xf0\x9f\x8d\x9e\r\n"}};
    bool ok = s && (minfer_append_chat(s, messages, 2, true, error) ||
                    (minfer_model_has_tokenizer(model) && minfer_append_text(s, "the bread", 9, 0, error)) ||
                    minfer_append(s, (const int32_t[]){0, 1, 2}, 3, error));
    int n = 0;
    while (ok && !minfer_idle(engine)) {
        minfer_event event;
        size_t n_events;
        ok = minfer_step(engine, &event, 1, &n_events, error);
        for (size_t i = 0; ok && i < n_events; i++) {
            if (event.token >= 0) tokens[n++] = event.token;
            if (event.finish == MINFER_FINISH_ERROR) *error = *event.error, ok = false;
        }
    }
    minfer_sequence_free(s);
    return ok ? n : -1;
}

static void run(const char *path) {
    minfer_error error = {0};
    minfer_model_options o;
    minfer_model_options_init(&o, sizeof o);
    o.n_threads = 1;
    minfer_model *model = minfer_model_open(path, &o, &error);
    if (!model) {
        need_sentence(&error);
        return;
    }
    minfer_engine_options e;
    minfer_engine_options_init(&e, sizeof e);
    e.n_ctx = minfer_model_n_ctx_train(model) < 256 ? minfer_model_n_ctx_train(model) : 256;
    minfer_engine *engine = minfer_engine_new(model, &e, &error);
    int32_t first[MAX_TOKENS], second[MAX_TOKENS];
    int n = engine ? answer(engine, model, first, &error) : -1;
    if (n < 0)
        need_sentence(&error);
    else if (answer(engine, model, second, &error) != n || memcmp(first, second, (size_t)n * sizeof first[0]) != 0)
        abort();
    minfer_engine_free(engine);
    minfer_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return -1;
    minfer_set_log_level(MINFER_LOG_ERROR);
    const size_t which = data[0] % N_BASES;
    char path[512];
    if (!base[which]) {
        mf_error err = {0};
        snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.gguf", bases[which]);
        if (!(base[which] = mf_gguf_open(path, &err))) abort();
    }
    size_t length;
    uint8_t *file = edited(base[which], (input){data + 1, data + size}, &length);
    int fd = memfd_create("model", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, length) != (ssize_t)length) abort();
    free(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    run(path);
    close(fd);
    return 0;
}
