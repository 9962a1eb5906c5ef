// Every refusal of docs/gguf.md that one file can meet, by its sentence.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "support/ggufgen.h"

static void refuse(const void *data, size_t size, const char *sentence) {
    // an own allocation of the exact size, so that a sanitizer sees reads past its end
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(copy, size, &err);
    if (file) fail_msg("opened, instead of: %s", sentence);
    assert_int_not_equal(err.code, MF_OK);
    if (!strstr(err.text, sentence)) fail_msg("'%s' instead of '%s'", err.text, sentence);
    free(copy);
}

static void refuse_gen(ggufgen *g, const char *sentence) {
    size_t size;
    uint8_t *data = ggufgen_finish(g, &size);
    refuse(data, size, sentence);
    free(data);
    ggufgen_free(g);
    ggufgen_init(g);
}

static void header(uint8_t out[24], const char *magic, uint32_t version, uint64_t n_tensors, uint64_t n_values) {
    memcpy(out, magic, 4);
    memcpy(out + 4, &version, 4);
    memcpy(out + 8, &n_tensors, 8);
    memcpy(out + 16, &n_values, 8);
}

static void test_header(void **state) {
    (void)state;
    uint8_t h[24];
    refuse("", 0, "the file is empty");
    refuse("GG", 2, "not a GGUF file: it starts with the bytes 47 47, not with 'GGUF'");
    refuse("PK\x03\x04 a zip archive of some sort", 30, "not a GGUF file: it starts with the bytes 50 4b 03 04");
    refuse("GGUF\x03\0\0\0", 8, "the file has 8 bytes, a GGUF header takes 24");
    header(h, "FUGG", 3, 0, 0);
    refuse(h, 24, "big-endian GGUF file (its magic is 'FUGG')");
    header(h, "GGUF", 0x03000000, 0, 0);
    refuse(h, 24, "big-endian GGUF file (its version field is 0x03000000)");
    header(h, "GGUF", 1, 0, 0);
    refuse(h, 24, "GGUF version 1; versions 2 and 3 are read");
    header(h, "GGUF", 4, 0, 0);
    refuse(h, 24, "GGUF version 4;");
    header(h, "GGUF", 0, 0, 0);
    refuse(h, 24, "GGUF version 0;");
    header(h, "GGUF", 3, 0, 1);
    refuse(h, 24, "1 keys; the file of 24 bytes has room for 0 at most");
    header(h, "GGUF", 3, 0, UINT64_MAX);
    refuse(h, 24, "18446744073709551615 keys;");
    header(h, "GGUF", 3, 1, 0);
    refuse(h, 24, "1 tensors; the file of 24 bytes has room for 0 at most");
    header(h, "GGUF", 3, UINT64_MAX, 0);
    refuse(h, 24, "18446744073709551615 tensors;");

    uint8_t *large = calloc(1, 32 << 20); // room for more than the fixed limit
    assert_non_null(large);
    header(large, "GGUF", 3, 0, (1 << 20) + 1);
    refuse(large, 32 << 20, "1048577 keys; the file of 33554432 bytes has room for 1048576 at most");
    free(large);
}

static void test_keys(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    static const uint8_t zero[8];
    ggufgen_value(&g, MF_STR(""), MF_GGUF_U64, zero, 8);
    refuse_gen(&g, "key 0 has an empty name");
    ggufgen_u32(&g, "fine", 1);
    ggufgen_value(&g, MF_STR("a\0b"), MF_GGUF_U64, zero, 8);
    refuse_gen(&g, "key 1 has a NUL byte in its name 'a'");
    ggufgen_value(&g, MF_STR("ab\xc0\x80"), MF_GGUF_U64, zero, 8);
    refuse_gen(&g, "key 0 has a name that is not UTF-8 at its byte 2 (0xc0)");
    char *large = malloc(70000);
    assert_non_null(large);
    memset(large, 'k', 70000);
    ggufgen_value(&g, (mf_str){large, 65536}, MF_GGUF_U64, zero, 8);
    refuse_gen(&g, "key 0 has a name of 65536 bytes, at most 65535");
    free(large);
    ggufgen_u32(&g, "twice", 1);
    ggufgen_u32(&g, "other", 1);
    ggufgen_u32(&g, "twice", 2);
    refuse_gen(&g, "key 'twice' is there twice");
    ggufgen_value(&g, MF_STR("k"), 13, zero, 8);
    refuse_gen(&g, "key 'k': a value of the unknown kind 13");
    ggufgen_value(&g, MF_STR("k"), UINT32_MAX, zero, 8);
    refuse_gen(&g, "key 'k': a value of the unknown kind 4294967295");
    ggufgen_value(&g, MF_STR("flag"), MF_GGUF_BOOL, "\x02", 1);
    refuse_gen(&g, "key 'flag': a bool is 2, not 0 or 1");
    ggufgen_value(&g, MF_STR("short"), MF_GGUF_U64, zero, 3);
    refuse_gen(&g, "key 'short': 1 values of kind u64, 3 bytes are left in the file");
    mf_buf_add(&g.values, "\xff\xff\xff\xff\xff\xff\xff\xff a key", 14); // a key whose length is not in the file
    g.n_values = 1;
    refuse_gen(&g, "the file ends inside key 0");
}

static void test_strings_and_arrays(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    static const uint64_t huge = UINT64_MAX;
    ggufgen_value(&g, MF_STR("s"), MF_GGUF_STRING, &huge, 8);
    refuse_gen(&g, "key 's': string 0 has 18446744073709551615 bytes, 0 are left in the file");
    ggufgen_array(&g, "a", MF_GGUF_U8, UINT64_MAX, "1234", 4);
    refuse_gen(&g, "key 'a': 18446744073709551615 values of kind u8, 4 bytes are left");
    ggufgen_array(&g, "a", MF_GGUF_F64, UINT64_MAX / 8 + 2, "1234", 4); // its bytes wrap around to 8
    refuse_gen(&g, "key 'a': 2305843009213693953 values of kind f64");
    ggufgen_array(&g, "a", MF_GGUF_STRING, UINT64_MAX, NULL, 0);
    refuse_gen(&g, "key 'a': the file ends inside its value");
    ggufgen_array(&g, "a", MF_GGUF_STRING, 2, "\x01\0\0\0\0\0\0\0z\x05\0\0\0\0\0\0\0zz", 19);
    refuse_gen(&g, "key 'a': string 1 has 5 bytes, 2 are left in the file");
    ggufgen_array(&g, "a", 77, 1, "1234", 4);
    refuse_gen(&g, "key 'a': array elements of the unknown kind 77");
    ggufgen_array(&g, "a", 77, 0, NULL, 0);
    refuse_gen(&g, "key 'a': array elements of the unknown kind 77");
    ggufgen_array(&g, "a", MF_GGUF_BOOL, 3, "\x01\x00\x07", 3);
    refuse_gen(&g, "key 'a': a bool is 7, not 0 or 1");
    ggufgen_value(&g, MF_STR("a"), MF_GGUF_ARRAY, "\x04", 1);
    refuse_gen(&g, "key 'a': the file ends inside its value");
    ggufgen_array(&g, "a", MF_GGUF_ARRAY, UINT64_MAX, NULL, 0);
    refuse_gen(&g, "key 'a': the file ends inside its value");
}

// Arrays of `depth` levels, the innermost of one byte.
static void add_nested(ggufgen *g, const char *key, int depth) {
    static const uint64_t one = 1;
    mf_buf levels = {0};
    for (int d = 1; d < depth; d++) {
        const uint32_t item = d + 1 < depth ? MF_GGUF_ARRAY : MF_GGUF_U8;
        mf_buf_add(&levels, &item, 4);
        mf_buf_add(&levels, &one, 8);
    }
    mf_buf_char(&levels, 'x');
    ggufgen_array(g, key, depth > 1 ? MF_GGUF_ARRAY : MF_GGUF_U8, 1, levels.data, levels.len);
    free(levels.data);
}

static void test_nesting(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    for (int depth = 1; depth <= 4; depth++) {
        char key[2] = {(char)('0' + depth), 0};
        add_nested(&g, key, depth);
    }
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    assert_int_equal(mf_gguf_find(file, "4")->item, MF_GGUF_ARRAY);
    mf_gguf_close(file);
    free(data);
    add_nested(&g, "deep", 5);
    refuse_gen(&g, "key 'deep': arrays are nested deeper than 4");
    add_nested(&g, "deep", 10000);
    refuse_gen(&g, "key 'deep': arrays are nested deeper than 4");
}

static void test_alignment(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    static const uint32_t bad[] = {0, 1, 4, 24, 33, 1 << 21, UINT32_MAX, 1u << 31};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char sentence[100];
        snprintf(sentence, sizeof sentence, "key 'general.alignment': %u is not a power of two from 8 to 1048576", bad[i]);
        ggufgen_u32(&g, "general.alignment", bad[i]);
        refuse_gen(&g, sentence);
    }
    ggufgen_str(&g, "general.alignment", "32");
    refuse_gen(&g, "key 'general.alignment' is of kind string, not u32");
    ggufgen_f32(&g, "general.alignment", 32);
    refuse_gen(&g, "key 'general.alignment' is of kind f32, not u32");
    ggufgen_array(&g, "general.alignment", MF_GGUF_U32, 0, NULL, 0);
    refuse_gen(&g, "key 'general.alignment' is of kind array, not u32");
}

static void test_tensor_infos(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    static const struct {
        const char *name, *sentence;
        uint32_t type, n_dims;
        uint64_t ne[5];
    } cases[] = {
        {"", "tensor 0 has an empty name", 0, 1, {4}},
        {"t\xff", "tensor 0 has a name that is not UTF-8 at its byte 1 (0xff)", 0, 1, {4}},
        {"t", "tensor 't' has 0 dimensions, not 1 to 4", 0, 0, {0}},
        {"t", "tensor 't' has 5 dimensions, not 1 to 4", 0, 5, {1, 1, 1, 1, 1}},
        {"t", "tensor 't': dimension 0 is 0", 0, 1, {0}},
        {"t", "tensor 't': dimension 2 is 0", 0, 3, {4, 4, 0}},
        {"t", "tensor 't': dimension 0 of 9223372036854775808 makes it too large", 0, 1, {1ull << 63}},
        {"t", "tensor 't': dimension 1 of 4294967296 makes it too large", 0, 2, {1ull << 32, 1ull << 32}},
        {"t", "tensor 't': dimension 3 of 65536 makes it too large", 0, 4, {65536, 65536, 65536, 65536}},
        {"t", "tensor 't': its size in bytes overflows", 28, 1, {1ull << 62}},
        {"t", "tensor 't': rows of 48 values are not a multiple of the 32 in a block of Q4_0", MF_TYPE_Q4_0, 1, {48}},
        {"t", "tensor 't': rows of 128 values are not a multiple of the 256 in a block of Q6_K", MF_TYPE_Q6_K, 2, {128, 2}},
        {"t", "tensor 't' is of the unknown type 4", 4, 1, {32}},
        {"t", "tensor 't' is of the unknown type 99", 99, 1, {32}},
        {"t", "tensor 't' is of the unknown type 4294967295", UINT32_MAX, 1, {32}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ggufgen_info(&g, mf_str_of(cases[i].name), cases[i].type, cases[i].n_dims, cases[i].ne, 0, 4096);
        refuse_gen(&g, cases[i].sentence);
    }
    ggufgen_info(&g, MF_STR("a\0"), 0, 1, cases[0].ne, 0, 4096);
    refuse_gen(&g, "tensor 0 has a NUL byte in its name 'a'");
    char name[257];
    memset(name, 'n', sizeof name);
    ggufgen_info(&g, (mf_str){name, 257}, 0, 1, cases[0].ne, 0, 4096);
    refuse_gen(&g, "tensor 0 has a name of 257 bytes, at most 256");
    ggufgen_info(&g, MF_STR("t"), 0, 1, cases[0].ne, 0, 32);
    ggufgen_info(&g, MF_STR("t"), 0, 1, cases[0].ne, 32, 32);
    refuse_gen(&g, "tensor 't' is there twice");
}

static void test_places(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    static const uint64_t ne[1] = {16}; // 64 bytes of F32
    ggufgen_info(&g, MF_STR("t"), 0, 1, ne, 8, 128);
    refuse_gen(&g, "tensor 't': its offset 8 is not a multiple of the alignment 32");
    ggufgen_info(&g, MF_STR("t"), 0, 1, ne, 96, 128);
    refuse_gen(&g, "tensor 't': its 64 bytes at offset 96 reach past the end of the file (128 bytes of data)");
    ggufgen_info(&g, MF_STR("t"), 0, 1, ne, UINT64_MAX - 31, 128);
    refuse_gen(&g, "tensor 't': its 64 bytes at offset 18446744073709551584 reach past the end of the file");
    ggufgen_info(&g, MF_STR("t"), 0, 1, ne, 0, 63);
    refuse_gen(&g, "tensor 't': its 64 bytes at offset 0 reach past the end of the file (63 bytes of data)");
    ggufgen_info(&g, MF_STR("b"), 0, 1, ne, 32, 64);
    ggufgen_info(&g, MF_STR("c"), 0, 1, ne, 96, 64);
    ggufgen_info(&g, MF_STR("a"), 0, 1, ne, 0, 64);
    refuse_gen(&g, "tensor 'b' overlaps tensor 'a' in the file");
    ggufgen_info(&g, MF_STR("a"), 0, 1, ne, 0, 64);
    ggufgen_info(&g, MF_STR("b"), 0, 1, ne, 0, 64);
    refuse_gen(&g, "overlaps tensor");

    ggufgen_info(&g, MF_STR("t"), 0, 1, ne, 0, 64);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    refuse(data, size - 64 - 1, "ends before the tensors' data at byte");
    free(data);
    ggufgen_free(&g);

    static const uint64_t four[4] = {4, 1, 1, 1};
    ggufgen_init(&g);
    ggufgen_info(&g, MF_STR("t"), 0, 4, four, 0, 16);
    data = ggufgen_finish(&g, &size);
    refuse(data, 24 + 9 + 4 + 20, "tensor 't': the file ends inside its description (at byte 53 of 57)");
    refuse(data, 24 + 9 + 4 + 32 + 4, "tensor 't': the file ends inside its description (at byte 73 of 73)");
    free(data);
    ggufgen_free(&g);
    mf_buf_add(&g.infos, "\xff\0\0\0\0\0\0\0 a name that is not all there", 33);
    g.version = 3;
    g.alignment = 32;
    g.n_tensors = 1;
    refuse_gen(&g, "the file ends inside the name of tensor 0");
    ggufgen_free(&g);
}

static void test_parts_in_memory(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_u32(&g, "split.count", 2);
    refuse_gen(&g, "a part of a split file in memory");
    ggufgen_str(&g, "split.count", "2");
    refuse_gen(&g, "key 'split.count' is of kind string, not an integer");
    ggufgen_u32(&g, "split.count", 1); // whole files that were once split
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_gguf *file = mf_gguf_open_memory(data, size, NULL);
    assert_non_null(file);
    mf_gguf_close(file);
    assert_null(mf_gguf_open_memory(data, size - 1, NULL)); // without an error to fill
    free(data);
    ggufgen_free(&g);
}

static void test_paths(void **state) {
    (void)state;
    mf_error err = {0};
    assert_null(mf_gguf_open("/no/such/file.gguf", &err));
    assert_non_null(strstr(err.text, "/no/such/file.gguf"));
    assert_null(mf_gguf_open("/", &err));
    assert_non_null(strstr(err.text, "directory"));
    assert_null(mf_gguf_open(MF_FIXTURES "/dequantize.bin", &err));
    assert_non_null(strstr(err.text, "dequantize.bin: not a GGUF file: it starts with the bytes 4d 46 44 51"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_strings_and_arrays),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_tensor_infos),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_parts_in_memory),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
