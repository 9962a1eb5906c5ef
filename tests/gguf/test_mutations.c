// Cut and mutated files: refused with a sentence or opened, never a crash. Sanitizers watch every byte that is read.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "support/ggufgen.h"
#include "support/ggufwalk.h"

static uint8_t *make(size_t *size) {
    static const char *const words[] = {"<unk>", "a", "bc"};
    static const uint8_t bytes[256] = {1, 2, 3};
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_str(&g, "general.architecture", "llama");
    ggufgen_u32(&g, "general.alignment", 32);
    ggufgen_bool(&g, "tokenizer.ggml.add_bos_token", true);
    ggufgen_strings(&g, "tokenizer.ggml.tokens", words, 3);
    ggufgen_array(&g, "tokenizer.ggml.scores", MF_GGUF_F32, 3, (const float[]){0, -1, -2}, 12);
    ggufgen_array(&g, "nested", MF_GGUF_ARRAY, 1, "\x07\0\0\0\x02\0\0\0\0\0\0\0\x01\0", 14);
    ggufgen_f32(&g, "llama.rope.freq_base", 10000);
    ggufgen_tensor(&g, "token_embd.weight", MF_TYPE_Q4_0, 2, (const uint64_t[]){32, 3}, bytes, 54);
    ggufgen_tensor(&g, "output_norm.weight", MF_TYPE_F32, 1, (const uint64_t[]){32}, bytes, 128);
    ggufgen_tensor(&g, "blk.0.attn_q.weight", MF_TYPE_Q6_K, 1, (const uint64_t[]){256}, bytes, 210);
    uint8_t *data = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return data;
}

// Opens an own allocation of the exact size.
static bool try(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(copy, size, &err);
    if (file)
        ggufwalk(file);
    else
        assert_true(err.code != MF_OK && err.text[0] != 0);
    const bool opened = file != NULL;
    mf_gguf_close(file);
    free(copy);
    return opened;
}

static void test_prefixes(void **state) {
    (void)state;
    size_t size;
    uint8_t *data = make(&size);
    assert_true(try(data, size));
    for (size_t n = 0; n < size; n++)
        if (try(data, n)) fail_msg("the first %zu of %zu bytes were opened", n, size);
    free(data);
}

static uint32_t draw(uint64_t *state, uint32_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

// One change of the bytes; returns the new size. There is room for 64 bytes more.
static size_t mutate(uint8_t *data, size_t size, uint64_t *random) {
    static const uint64_t edges[] = {0,          1,          0x7f,       0xff,       0x7fffffff,
                                     0xffffffff, 1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX};
    const uint32_t at = draw(random, (uint32_t)size - 8);
    switch (draw(random, 5)) {
    case 0: data[at] ^= (uint8_t)(1u << draw(random, 8)); return size;
    case 1: data[at] = (uint8_t)draw(random, 256); return size;
    case 2: memcpy(data + at, &edges[draw(random, 10)], draw(random, 2) ? 8 : 4); return size;
    case 3: // insert
        memmove(data + at + 8, data + at, size - at);
        return size + 8;
    default: // remove
        memmove(data + at, data + at + 4, size - at - 4);
        return size - 4;
    }
}

static void test_mutations(void **state) {
    (void)state;
    size_t size;
    uint8_t *data = make(&size), *copy = malloc(size + 64);
    assert_non_null(copy);
    uint64_t random = 2026;
    int opened = 0;
    const int n = 6000;
    for (int i = 0; i < n; i++) {
        memcpy(copy, data, size);
        size_t len = size;
        for (uint32_t k = 1 + draw(&random, 4); k > 0; k--) len = mutate(copy, len, &random);
        opened += try(copy, len);
    }
    assert_true(opened > n / 50 && opened < n); // changes of the data are harmless, most others are not
    free(copy);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prefixes), cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
