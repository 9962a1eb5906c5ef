// Encoding takes linear time up to a logarithm on long texts of every kind, with every pre-tokenizer: 16 times the text takes about 16
// times the processor's time, where a quadratic step would take 256 times. A ratio within one process, so a slow machine changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "text/pretokenizers.h"
#include "text/tiny_vocab.h"

#define TIMES      16
#define MOST_RATIO 90

// Each is repeated to the length: one word, no word, runs of what the expressions look ahead over, marks to be ordered, bytes that are
// not UTF-8.
static const mf_str kinds[] = {
    {"l", 1},
    {" ", 1},
    {"7", 1},
    {"<", 1},
    {"\n", 1},
    {"\r\n", 2},
    {" \n", 2},
    {"\t ", 2},
    {"hello ", 6},
    {"'s", 2},
    {"aB", 2},
    {"1a", 2},
    {"!?", 2},
    {"\xE4\xBD\xA0", 3},
    {"\xE3\x81\x82", 3},
    {"e\xCC\x81", 3},
    {"\xCC\x81\xCC\xA3", 4},
    {"\xF0\x9F\x91\xA9\xE2\x80\x8D", 7},
    {"\xFF", 1},
    {"a\x80", 2},
    {"<|im_", 5},
    {"<think", 6},
    {"IMGIMGA", 7},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static double seconds_of(const mf_tokenizer *t, mf_str text) {
    struct timespec before, after;
    mf_token_array ids = {0};
    mf_error err = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    const bool ok = mf_tokenizer_encode(t, text, MF_ENCODE_PARSE_CONTROL, &ids, &err);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    if (!ok) fail_msg("%s", err.text);
    assert_true(ids.len > 0);
    free(ids.data);
    return (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
}

static double least(const mf_tokenizer *t, mf_str text, int runs) {
    double best = seconds_of(t, text);
    for (int i = 1; i < runs; i++) {
        double s = seconds_of(t, text);
        if (s < best) best = s;
    }
    return best;
}

// What the vocabulary makes of texts of one kind, in the first half, and another in the second.
static void check_text(const mf_tokenizer *t, char *text, size_t size, const char *name, mf_str first, mf_str second) {
    for (size_t part = size / TIMES;; part = size) {
        static double seconds;
        for (size_t i = 0; i < part; i++)
            text[i] = i < part / 2 ? first.ptr[i % first.len] : second.ptr[(i - part / 2) % second.len];
        double now = least(t, (mf_str){text, part}, 3);
        if (part == size && now > MOST_RATIO * seconds)
            fail_msg("%s: %d times the text takes %.0f times the time", name, TIMES, now / seconds);
        if (part == size) return;
        seconds = now;
    }
}

static void check(const tiny_vocab *v, const mf_tokenizer_options *opts, size_t size) {
    size_t file_size;
    uint8_t *bytes = tiny_build(v, &file_size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(bytes, file_size, &err);
    mf_tokenizer *t = file ? mf_tokenizer_new(file, opts, &err) : NULL;
    if (!t) fail_msg("%s", err.text);
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t k = 0; k < N_KINDS; k++) {
        for (size_t i = 0; i < size; i++) text[i] = kinds[k].ptr[i % kinds[k].len];
        const double part = least(t, (mf_str){text, size / TIMES}, 3), whole = least(t, (mf_str){text, size}, 1);
        if (whole > MOST_RATIO * part &&
            least(t, (mf_str){text, size}, 3) > MOST_RATIO * least(t, (mf_str){text, size / TIMES}, 3))
            fail_msg("%s, kind %zu: %d times the text takes %.0f times the time", v->model[0] == 'l' ? "llama" : opts->pre,
                     k, TIMES, whole / part);
    }
    free(text);
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    free(bytes);
}

static void a_megabyte(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_bpe(&v);
    check(&v, &(mf_tokenizer_options){.pre = "qwen2"}, 1 << 20);
    tiny_spm(&v);
    check(&v, &(mf_tokenizer_options){0}, 1 << 20);
}

static void every_pretokenizer(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_bpe(&v);
    mf_buf names = {0};
    mf_pretokenizer_list(&names);
    assert_false(names.failed);
    for (char *next, *name = names.data; name && *name; name = next) {
        next = strchr(name, ' ');
        if (next) *next++ = 0;
        check(&v, &(mf_tokenizer_options){.pre = name}, 64 * 1024);
    }
    free(names.data);
}

// Merges whose pairs fall on neighbouring places under a multiplicative hash that everybody knows cost what any merges cost: where a pair
// is searched is a secret of the process.
enum {
    HALVES = 700,
    MERGES = 20000,
    PLACES = 32768
};

static uint32_t known_place(uint32_t left, uint32_t right) {
    uint64_t x = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    return (uint32_t)(x * 0xD6E8FEB86659FD93u >> 20) & (PLACES - 1);
}

// A file with pairs of HALVES left and right tokens: those of the lowest places, or of all places.
static uint8_t *pairs_file(bool chosen, size_t *size) {
    tiny_vocab bytes;
    tiny_bpe(&bytes);
    enum {
        MOST = 256 + 2 * HALVES + MERGES
    };
    static const char *tokens[MOST], *merges[MERGES];
    static char names[2 * HALVES][8], wholes[MERGES][16], pairs[MERGES][16];
    size_t n = 0, n_merges = 0;
    for (; n < 256; n++) tokens[n] = bytes.tokens[n];
    for (uint32_t i = 0; i < 2 * HALVES; i++) {
        snprintf(names[i], sizeof names[i], "%c%u", i < HALVES ? 'L' : 'R', i % HALVES);
        tokens[n++] = names[i];
    }
    const uint32_t below = (uint32_t)((uint64_t)PLACES * MERGES / (HALVES * HALVES) + PLACES / 400);
    for (uint32_t k = 0; k < HALVES * HALVES && n_merges < MERGES; k++) {
        const uint32_t i = k / HALVES, j = k % HALVES;
        if (chosen ? known_place(256 + i, 256 + HALVES + j) >= below : k % 24 != 0) continue;
        snprintf(wholes[n_merges], sizeof wholes[0], "%s%s", names[i], names[HALVES + j]);
        snprintf(pairs[n_merges], sizeof pairs[0], "%s %s", names[i], names[HALVES + j]);
        tokens[n++] = wholes[n_merges];
        merges[n_merges] = pairs[n_merges];
        n_merges++;
    }
    assert_int_equal(n_merges, MERGES);
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_str(&g, "general.architecture", "llama");
    ggufgen_str(&g, "tokenizer.ggml.model", "gpt2");
    ggufgen_str(&g, "tokenizer.ggml.pre", "qwen2");
    ggufgen_strings(&g, "tokenizer.ggml.tokens", tokens, n);
    ggufgen_strings(&g, "tokenizer.ggml.merges", merges, n_merges);
    uint8_t *file = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return file;
}

static double load_seconds(bool chosen) {
    size_t size;
    uint8_t *bytes = pairs_file(chosen, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(bytes, size, &err);
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        mf_tokenizer *t = file ? mf_tokenizer_new(file, &(mf_tokenizer_options){0}, &err) : NULL;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        if (!t) fail_msg("%s", err.text);
        mf_tokenizer_free(t);
        const double s = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
        if (s < best) best = s;
    }
    mf_gguf_close(file);
    free(bytes);
    return best;
}

static void merges_that_are_made_to_collide(void **state) {
    (void)state;
    const double any = load_seconds(false), chosen = load_seconds(true);
    if (chosen > 6 * any) fail_msg("chosen merges load in %.0f times the time of others", chosen / any);
}

static mf_tokenizer *open_vocab(const tiny_vocab *v, uint8_t **bytes, mf_gguf **file) {
    size_t size;
    mf_error err = {0};
    *bytes = tiny_build(v, &size);
    *file = mf_gguf_open_memory(*bytes, size, &err);
    mf_tokenizer *t = *file ? mf_tokenizer_new(*file, NULL, &err) : NULL;
    if (!t) fail_msg("%s", err.text);
    return t;
}

// Unused pieces come apart at the end, each the way it was put together.
static void many_unused_pieces(void **state) {
    (void)state;
    static tiny_vocab v;
    static char text[1 << 19];
    tiny_spm(&v);
    tiny_add(&v, "c", MF_TOKEN_NORMAL, -1);
    tiny_add(&v, "d", MF_TOKEN_NORMAL, -1);
    tiny_add(&v, "cd", MF_TOKEN_UNUSED, -1);
    v.types[SPM_AB] = MF_TOKEN_UNUSED;
    v.types[SPM_BA] = MF_TOKEN_CONTROL;
    v.n_scores = v.n;
    uint8_t *bytes;
    mf_gguf *file;
    mf_tokenizer *t = open_vocab(&v, &bytes, &file);
    check_text(t, text, sizeof text, "unused pieces", MF_STR("ab"), MF_STR("cd"));
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    free(bytes);
}

// A text that looks like a long special token from every place on costs little more than one that doesn't.
static void long_special_token(void **state) {
    (void)state;
    static tiny_vocab v;
    static char special[4097], text[1 << 19];
    memset(special, 'z', 4095);
    special[4095] = 'q';
    tiny_bpe(&v);
    tiny_add(&v, special, MF_TOKEN_CONTROL, 0);
    uint8_t *bytes;
    mf_gguf *file;
    mf_tokenizer *t = open_vocab(&v, &bytes, &file);
    memset(text, 'z', sizeof text);
    double like = least(t, (mf_str){text, sizeof text}, 3);
    memset(text, 'y', sizeof text);
    double unlike = least(t, (mf_str){text, sizeof text}, 3);
    if (like > 20 * unlike) fail_msg("%.0f times the time of another text", like / unlike);
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_megabyte), cmocka_unit_test(every_pretokenizer),
                                       cmocka_unit_test(merges_that_are_made_to_collide),
                                       cmocka_unit_test(many_unused_pieces), cmocka_unit_test(long_special_token)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
