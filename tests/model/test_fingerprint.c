// The fingerprint of a model: every byte counts, nothing else does, and what is kept of it is right.
#define _GNU_SOURCE // sched_setaffinity
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "model/model.h"
#include "support/folder.h"
#include "support/ggufgen.h"

#define N_VOCAB 290000 // token_embd.weight is what makes the file worth a line in the cache
#define LINE    99

static char folder[64], path[96], kept[128];
static uint8_t *image;
static size_t image_size;
static int64_t seconds_later; // than it is

int clock_gettime(clockid_t clock, struct timespec *t) {
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME) t->tv_sec += (time_t)seconds_later;
    return rc;
}

static void add(ggufgen *g, const char *name, uint64_t in, uint64_t out) {
    size_t n = (size_t)(in * (out ? out : 1));
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) values[i] = (float)(i % 251) * 0.01f;
    ggufgen_tensor(g, name, MF_TYPE_F32, out ? 2 : 1, (const uint64_t[]){in, out}, values, n * sizeof *values);
    free(values);
}

static void make_image(void) {
    static const struct {
        const char *name;
        uint64_t in, out;
    } tensors[] = {{"token_embd.weight", 32, N_VOCAB},   {"output_norm.weight", 32, 0},    {"blk.0.attn_norm.weight", 32, 0},
                   {"blk.0.attn_q.weight", 32, 32},      {"blk.0.attn_k.weight", 32, 16},  {"blk.0.attn_v.weight", 32, 16},
                   {"blk.0.attn_output.weight", 32, 32}, {"blk.0.ffn_norm.weight", 32, 0}, {"blk.0.ffn_gate.weight", 32, 64},
                   {"blk.0.ffn_up.weight", 32, 64},      {"blk.0.ffn_down.weight", 64, 32}};
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_str(&g, "general.architecture", "llama");
    ggufgen_str(&g, "general.name", "fingerprints");
    ggufgen_u32(&g, "llama.block_count", 1);
    ggufgen_u32(&g, "llama.context_length", 128);
    ggufgen_u32(&g, "llama.embedding_length", 32);
    ggufgen_u32(&g, "llama.feed_forward_length", 64);
    ggufgen_u32(&g, "llama.attention.head_count", 4);
    ggufgen_u32(&g, "llama.attention.head_count_kv", 2);
    ggufgen_f32(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) add(&g, tensors[i].name, tensors[i].in, tensors[i].out);
    image = ggufgen_finish(&g, &image_size);
    ggufgen_free(&g);
}

static mf_hash128 print_of(mf_gguf *file) {
    mf_error err = {0};
    mf_hash128 print = {{0}};
    mf_model *model = file ? mf_model_new(file, &err) : NULL;
    if (!model || !mf_model_fingerprint(model, &print, &err)) fail_msg("no fingerprint: %s", err.text);
    mf_model_free(model);
    mf_gguf_close(file);
    return print;
}

static mf_hash128 print_of_image(void) { return print_of(mf_gguf_open_memory(image, image_size, NULL)); }
static mf_hash128 print_of_file(void) { return print_of(mf_gguf_open(path, NULL)); }

static bool same(mf_hash128 a, mf_hash128 b) { return memcmp(&a, &b, sizeof a) == 0; }

static void every_byte_counts(void **state) {
    (void)state;
    const mf_hash128 print = print_of_image();
    mf_gguf *file = mf_gguf_open_memory(image, image_size, NULL);
    assert_non_null(file);
    size_t places[64], n = 0;
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(file, i);
        const size_t at = (size_t)(t->data - image), in[] = {0, 4096, ((size_t)1 << 20) - 1, (size_t)1 << 20, t->size - 1};
        for (size_t k = 0; k < 5; k++)
            if (in[k] < t->size) places[n++] = at + in[k];
    }
    const mf_gguf_value *name = mf_gguf_find(file, "general.name");
    places[n++] = (size_t)(name->data - image) + 10;
    mf_gguf_close(file);
    for (size_t i = 0; i < n; i++) {
        image[places[i]] ^= 1;
        mf_hash128 other = print_of_image();
        image[places[i]] ^= 1;
        if (same(print, other)) fail_msg("byte %zu does not count", places[i]);
    }
    assert_true(same(print, print_of_image()));
}

static void the_threads_do_not(void **state) {
    (void)state;
    const mf_hash128 print = print_of_image();
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    mf_hash128 alone = print_of_image();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_true(same(print, alone));
}

// ---- What is kept

static mf_buf read_kept(void) {
    mf_buf lines = {0};
    if (!mf_file_read(kept, 1 << 20, &lines, NULL)) lines.len = 0;
    assert_int_equal(lines.len % LINE, 0);
    return lines;
}

static size_t n_kept(void) {
    mf_buf lines = read_kept();
    free(lines.data);
    return lines.len / LINE;
}

static void write_file(void) { assert_true(mf_file_write(path, image, image_size, NULL)); }

static void it_is_kept_once_the_file_is_settled(void **state) {
    (void)state;
    struct stat st;
    const mf_hash128 print = print_of_image();
    assert_int_equal(n_kept(), 0); // of bytes in memory nothing is
    write_file();
    assert_true(same(print_of_file(), print));
    assert_int_equal(n_kept(), 0); // it could change again, unseen
    seconds_later = 10;
    for (int i = 0; i < 2; i++) assert_true(same(print_of_file(), print));
    assert_int_equal(n_kept(), 1);
    assert_int_equal(stat(kept, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    write_file(); // the same bytes in another file
    assert_true(same(print_of_file(), print));
    assert_int_equal(n_kept(), 2);
    unlink(kept);
}

static void what_is_kept_is_used(void **state) {
    (void)state;
    seconds_later = 10;
    write_file();
    const mf_hash128 print = print_of_file();
    mf_buf lines = read_kept();
    char line[LINE + 1];
    mf_hash128 words[3] = {{{0}}}, invented = {{1, 2}};
    assert_int_equal(lines.len, LINE);
    assert_int_equal(sscanf(lines.data, "%16" SCNx64 "%16" SCNx64, &words[0].word[0], &words[0].word[1]), 2);
    words[1] = invented;
    words[2] = mf_hash128_of(words, 2 * sizeof *words, 0);
    for (int i = 0; i < 3; i++)
        snprintf(line + i * 33, 34, "%016" PRIx64 "%016" PRIx64 "%c", words[i].word[0], words[i].word[1],
                 i < 2 ? ' ' : '\n');
    assert_true(mf_file_write(kept, line, LINE, NULL));
    assert_true(same(print_of_file(), invented));
    for (int at = 0; at < LINE; at++) { // a line that is damaged counts for nothing
        char old = line[at];
        line[at] = old == '5' ? '6' : '5';
        assert_true(mf_file_write(kept, line, LINE, NULL));
        line[at] = old;
        if (at % 9 == 0) assert_true(same(print_of_file(), print));
    }
    assert_true(mf_file_write(kept, line, LINE - 1, NULL));
    assert_true(same(print_of_file(), print));
    assert_int_equal(n_kept(), 1);
    free(lines.data);
    unlink(kept);
}

static void a_change_is_seen(void **state) {
    (void)state;
    mf_error err = {0};
    seconds_later = 10;
    write_file();
    const mf_hash128 print = print_of_file();
    mf_gguf *file = mf_gguf_open(path, &err); // opened before the change
    struct timespec times[2];
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    times[0] = st.st_atim, times[1] = st.st_mtim;
    int fd = open(path, O_RDWR);
    image[image_size - 100] ^= 1;
    assert_int_equal(pwrite(fd, image + image_size - 100, 1, (off_t)image_size - 100), 1);
    const mf_hash128 other = print_of_image();
    image[image_size - 100] ^= 1;
    assert_int_equal(futimens(fd, times), 0); // the time of the bytes is put back
    close(fd);
    assert_false(same(print, other));
    size_t before = n_kept();
    print_of(file);
    assert_int_equal(n_kept(), before); // of a file that has changed since nothing is kept
    assert_true(same(print_of_file(), other));
    assert_int_equal(n_kept(), before + 1);
    unlink(kept);
}

static void the_list_does_not_grow_without_an_end(void **state) {
    (void)state;
    enum {
        MOST = 256
    };
    seconds_later = 10;
    write_file();
    char *many = malloc(MOST * LINE);
    assert_non_null(many);
    memset(many, 'x', MOST * LINE);
    assert_true(mf_file_write(kept, many, MOST * LINE, NULL));
    free(many);
    print_of_file();
    mf_buf lines = read_kept();
    assert_int_equal(lines.len, MOST * LINE);
    assert_true(lines.data[0] == 'x' && lines.data[lines.len - LINE] != 'x');
    free(lines.data);
    unlink(kept);
}

static int set_up(void **state) {
    (void)state;
    if (!folder_make(folder, "fingerprint")) return -1;
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    snprintf(kept, sizeof kept, "%s/minfer/fingerprints", folder);
    make_image();
    return image ? setenv("XDG_CACHE_HOME", folder, 1) : -1;
}

static int tear_down(void **state) {
    (void)state;
    free(image);
    unlink(path);
    char below[128];
    snprintf(below, sizeof below, "%s/minfer", folder);
    return rmdir(below) || rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_byte_counts),
                                       cmocka_unit_test(the_threads_do_not),
                                       cmocka_unit_test(it_is_kept_once_the_file_is_settled),
                                       cmocka_unit_test(what_is_kept_is_used),
                                       cmocka_unit_test(a_change_is_seen),
                                       cmocka_unit_test(the_list_does_not_grow_without_an_end)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
