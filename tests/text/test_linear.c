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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_megabyte), cmocka_unit_test(every_pretokenizer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
