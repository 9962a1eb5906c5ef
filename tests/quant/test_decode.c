// Every decoder against the Python package gguf, bit for bit (tests/oracle/dequantize.py makes the fixture).
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "quant/types.h"

typedef struct fixture {
    uint8_t *data;
    size_t size, at;
} fixture;

static const uint8_t *take(fixture *f, size_t n) {
    assert_true(n <= f->size - f->at);
    f->at += n;
    return f->data + f->at - n;
}

static uint32_t take_u32(fixture *f) {
    uint32_t n;
    memcpy(&n, take(f, 4), 4);
    return n;
}

static int open_fixture(void **state) {
    static fixture f;
    FILE *file = fopen(MF_FIXTURES "/dequantize.bin", "rb");
    assert_non_null(file);
    f = (fixture){.data = malloc(1 << 20)};
    assert_non_null(f.data);
    f.size = fread(f.data, 1, 1 << 20, file);
    fclose(file);
    assert_memory_equal(take(&f, 64), "MFDQ", 4);
    *state = &f;
    return 0;
}

static int close_fixture(void **state) {
    free(((fixture *)*state)->data);
    return 0;
}

static void test_sizes(fixture *f) {
    for (uint32_t n = take_u32(f); n > 0; n--) {
        const uint32_t type = take_u32(f), len = take_u32(f), bytes = take_u32(f);
        const char *name = (const char *)take(f, 20);
        const mf_type_info *info = mf_type_info_of(type);
        assert_non_null(info);
        assert_string_equal(info->name, name);
        assert_int_equal(info->block_len, len);
        assert_int_equal(info->block_bytes, bytes);
    }
}

static bool same_bits(float a, float b) {
    if (a != a || b != b) return a != a && b != b; // which NaN comes out of an operation is the machine's affair
    return mf_f32_bits(a) == mf_f32_bits(b);
}

static void test_decode_case(fixture *f) {
    const uint32_t type = take_u32(f), n_blocks = take_u32(f), n = take_u32(f);
    const mf_type_info *info = mf_type_info_of(type);
    assert_non_null(info);
    assert_non_null(info->decode);
    assert_int_equal(n, n_blocks * info->block_len);
    const uint8_t *blocks = take(f, (size_t)n_blocks * info->block_bytes);
    const uint8_t *wanted = take(f, 4 * (size_t)n);
    float *out = malloc((n + 1) * sizeof *out);
    assert_non_null(out);
    out[n] = 12345;
    info->decode(blocks, out, n);
    for (uint32_t i = 0; i < n; i++) {
        float w;
        memcpy(&w, wanted + 4 * (size_t)i, 4);
        if (!same_bits(out[i], w)) fail_msg("%s value %u: %a, not %a", info->name, i, (double)out[i], (double)w);
    }
    assert_true(out[n] == 12345); // nothing behind the end
    free(out);
}

static void test_decode(void **state) {
    fixture *f = *state;
    test_sizes(f);
    uint32_t n = take_u32(f), decodable = 0;
    for (uint32_t type = 0; type < MF_TYPE_LIMIT; type++) {
        const mf_type_info *info = mf_type_info_of(type);
        if (info && info->decode) decodable++;
    }
    assert_int_equal(n, decodable);
    for (; n > 0; n--) test_decode_case(f);
    assert_int_equal(f->at, f->size);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_decode, open_fixture, close_fixture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
