// A valid file: everything in it is found as it was written.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "support/ggufgen.h"
#include "support/ggufwalk.h"

static const char *const words[] = {"<s>", "", "hello", "\xff\x00zig"};

static void add_all_kinds(ggufgen *g) {
    const uint8_t u8 = 200;
    const int8_t i8 = -5;
    const uint16_t u16 = 65535;
    const int16_t i16 = -300;
    const int32_t i32 = -70000;
    const uint64_t u64 = UINT64_MAX, small = 7;
    const int64_t i64 = INT64_MIN;
    const double f64 = 1e300, eps = 1e-5;
    ggufgen_str(g, "general.architecture", "llama");
    ggufgen_value(g, MF_STR("a.u8"), MF_GGUF_U8, &u8, sizeof u8);
    ggufgen_value(g, MF_STR("a.i8"), MF_GGUF_I8, &i8, sizeof i8);
    ggufgen_value(g, MF_STR("a.u16"), MF_GGUF_U16, &u16, sizeof u16);
    ggufgen_value(g, MF_STR("a.i16"), MF_GGUF_I16, &i16, sizeof i16);
    ggufgen_u32(g, "a.u32", 4000000000u);
    ggufgen_value(g, MF_STR("a.i32"), MF_GGUF_I32, &i32, sizeof i32);
    ggufgen_f32(g, "a.f32", 0.5f);
    ggufgen_bool(g, "a.bool", true);
    ggufgen_value(g, MF_STR("a.u64"), MF_GGUF_U64, &u64, sizeof u64);
    ggufgen_value(g, MF_STR("a.small"), MF_GGUF_U64, &small, sizeof small);
    ggufgen_value(g, MF_STR("a.i64"), MF_GGUF_I64, &i64, sizeof i64);
    ggufgen_value(g, MF_STR("a.f64"), MF_GGUF_F64, &f64, sizeof f64);
    ggufgen_value(g, MF_STR("a.eps"), MF_GGUF_F64, &eps, sizeof eps);
    ggufgen_strings(g, "a.words", words, 4);
    ggufgen_array(g, "a.types", MF_GGUF_I32, 2, (const int32_t[]){-1, 3}, 8);
    ggufgen_array(g, "a.none", MF_GGUF_STRING, 0, NULL, 0);
    ggufgen_str(g, "tokenizer.chat_template", "{{ x }}");
}

static const float f32_data[6] = {1, 2, 3, 4, 5, 6};

static void make(ggufgen *g) {
    static const uint8_t blocks[2 * 18] = {0, 0x3c, 0x98};
    ggufgen_init(g);
    add_all_kinds(g);
    ggufgen_tensor(g, "matrix", MF_TYPE_F32, 2, (const uint64_t[]){3, 2}, f32_data, sizeof f32_data);
    ggufgen_tensor(g, "blocks", MF_TYPE_Q4_0, 1, (const uint64_t[]){64}, blocks, sizeof blocks);
    ggufgen_tensor(g, "listed", 39, 4, (const uint64_t[]){32, 1, 2, 1}, blocks, 34);
}

static void test_values(void **state) {
    (void)state;
    ggufgen g;
    make(&g);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    assert_int_equal(mf_gguf_version(file), 3);
    assert_int_equal(mf_gguf_alignment(file), 32);
    assert_int_equal(mf_gguf_n_parts(file), 1);
    assert_int_equal(mf_gguf_file_size(file), size);
    assert_int_equal(mf_gguf_n_values(file), g.n_values);
    static const struct {
        const char *key;
        int64_t wanted;
    } integers[] = {{"a.u8", 200},     {"a.i8", -5},   {"a.u16", 65535},     {"a.i16", -300},      {"a.u32", 4000000000},
                    {"a.i32", -70000}, {"a.small", 7}, {"a.u64", INT64_MAX}, {"a.i64", INT64_MIN}, {"a.bool", 1}};
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        assert_true(mf_gguf_int_at(mf_gguf_find(file, integers[i].key), 0) == integers[i].wanted);
    assert_true(mf_gguf_real_at(mf_gguf_find(file, "a.f32"), 0) == 0.5);
    assert_true(mf_gguf_real_at(mf_gguf_find(file, "a.f64"), 0) == 1e300);
    assert_true(mf_gguf_real_at(mf_gguf_find(file, "a.u64"), 0) == 0x1p64);
    assert_true(mf_gguf_real_at(mf_gguf_find(file, "a.i8"), 0) == -5);
    assert_int_equal(mf_gguf_int_at(mf_gguf_find(file, "a.words"), 0), 0); // not numbers
    assert_null(mf_gguf_find(file, "a.absent"));
    assert_null(mf_gguf_find(file, ""));
    const mf_gguf_value *last = mf_gguf_value_at(file, mf_gguf_n_values(file) - 1);
    assert_true(mf_str_is(last->key, "tokenizer.chat_template"));
    ggufwalk(file);
    mf_gguf_close(file);
    free(data);
    ggufgen_free(&g);
}

static void test_arrays(void **state) {
    (void)state;
    ggufgen g;
    make(&g);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    const mf_gguf_value *v = mf_gguf_get_array(file, "a.words", MF_GGUF_STRING, &err);
    assert_non_null(v);
    assert_int_equal(v->count, 4);
    size_t offset = 0;
    for (size_t i = 0; i < 4; i++) assert_true(mf_str_is(mf_gguf_next_string(v, &offset), words[i]));
    assert_int_equal(offset, v->size);
    assert_int_equal(mf_gguf_next_string(v, &offset).len, 0); // past the end: empty, and it stays there
    assert_int_equal(offset, v->size);
    v = mf_gguf_get_array(file, "a.types", MF_GGUF_I32, &err);
    assert_non_null(v);
    assert_int_equal(mf_gguf_int_at(v, 0), -1);
    assert_int_equal(mf_gguf_int_at(v, 1), 3);
    assert_non_null(mf_gguf_get_array(file, "a.none", MF_GGUF_STRING, &err));
    assert_null(mf_gguf_get_array(file, "a.absent", MF_GGUF_STRING, &err));
    assert_int_equal(err.code, MF_OK);
    assert_null(mf_gguf_get_array(file, "a.types", MF_GGUF_STRING, &err));
    assert_string_equal(err.text, "key 'a.types' is an array of i32, not an array of string");
    err = (mf_error){0};
    assert_null(mf_gguf_get_array(file, "a.u32", MF_GGUF_U32, &err));
    assert_string_equal(err.text, "key 'a.u32' is of kind u32, not an array of u32");
    mf_gguf_close(file);
    free(data);
    ggufgen_free(&g);
}

static void test_typed(void **state) {
    (void)state;
    ggufgen g;
    make(&g);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    uint32_t u = 42;
    float f = 42;
    bool b = false;
    mf_str s = MF_STR("default");
    assert_true(mf_gguf_get_u32(file, "a.absent", &u, &err) && u == 42);
    assert_true(mf_gguf_get_f32(file, "a.absent", &f, &err) && f == 42);
    assert_true(mf_gguf_get_bool(file, "a.absent", &b, &err) && !b);
    assert_true(mf_gguf_get_str(file, "a.absent", &s, &err) && mf_str_is(s, "default"));
    assert_true(mf_gguf_get_u32(file, "a.u8", &u, &err) && u == 200);
    assert_true(mf_gguf_get_u32(file, "a.small", &u, &err) && u == 7);
    assert_true(mf_gguf_get_u32(file, "a.u32", &u, &err) && u == 4000000000u);
    assert_true(mf_gguf_get_f32(file, "a.f32", &f, &err) && f == 0.5f);
    assert_true(mf_gguf_get_f32(file, "a.eps", &f, &err) && f == 1e-5f);
    assert_true(mf_gguf_get_f32(file, "a.i16", &f, &err) && f == -300);
    assert_true(mf_gguf_get_bool(file, "a.bool", &b, &err) && b);
    assert_true(mf_gguf_get_str(file, "general.architecture", &s, &err) && mf_str_is(s, "llama"));
    assert_int_equal(err.code, MF_OK);

    u = 42;
    assert_false(mf_gguf_get_u32(file, "a.i8", &u, &err));
    assert_string_equal(err.text, "key 'a.i8': -5 is not a number from 0 to 4294967295");
    assert_false(mf_gguf_get_u32(file, "a.u64", &u, &err));
    assert_string_equal(err.text, "key 'a.u64': 18446744073709551615 does not fit in 32 bits");
    assert_false(mf_gguf_get_u32(file, "a.bool", &u, &err));
    assert_string_equal(err.text, "key 'a.bool' is of kind bool, not an integer");
    assert_false(mf_gguf_get_u32(file, "a.f32", &u, &err));
    assert_false(mf_gguf_get_u32(file, "a.types", &u, &err));
    assert_string_equal(err.text, "key 'a.types' is an array of i32, not an integer");
    assert_false(mf_gguf_get_f32(file, "a.words", &f, &err));
    assert_false(mf_gguf_get_f32(file, "a.bool", &f, &err));
    assert_false(mf_gguf_get_f32(file, "a.f64", &f, &err));
    assert_string_equal(err.text, "key 'a.f64': 1e+300 does not fit in a float");
    assert_false(mf_gguf_get_bool(file, "a.u8", &b, &err));
    assert_false(mf_gguf_get_str(file, "a.u8", &s, &err));
    assert_string_equal(err.text, "key 'a.u8' is of kind u8, not a string");
    assert_int_equal(u, 42); // refusals leave the value alone
    mf_gguf_close(file);
    free(data);
    ggufgen_free(&g);
}

static void test_tensors(void **state) {
    (void)state;
    ggufgen g;
    make(&g);
    for (uint32_t version = 2; version <= 3; version++) {
        g.version = version;
        size_t size;
        uint8_t *data = ggufgen_finish(&g, &size);
        mf_error err = {0};
        mf_gguf *file = mf_gguf_open_memory(data, size, &err);
        assert_non_null(file);
        assert_int_equal(mf_gguf_version(file), version);
        assert_int_equal(mf_gguf_n_tensors(file), 3);
        const mf_gguf_tensor *t = mf_gguf_find_tensor(file, "matrix");
        assert_ptr_equal(t, mf_gguf_tensor_at(file, 0));
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->ne[0], 3);
        assert_int_equal(t->ne[1], 2);
        assert_int_equal(t->ne[2], 1);
        assert_int_equal(t->ne[3], 1);
        assert_int_equal(t->size, 24);
        assert_memory_equal(t->data, f32_data, 24);
        t = mf_gguf_find_tensor(file, "blocks");
        assert_int_equal(t->type, MF_TYPE_Q4_0);
        assert_int_equal(t->size, 36);
        float values[64];
        mf_type_info_of(t->type)->decode(t->data, values, 64);
        assert_true(values[0] == 0 && values[16] == 1);
        t = mf_gguf_find_tensor(file, "listed"); // a type without a decoder is listed all the same
        assert_string_equal(mf_type_name(t->type), "MXFP4");
        assert_int_equal(t->size, 34);
        assert_null(mf_gguf_find_tensor(file, "matri"));
        assert_null(mf_gguf_find_tensor(file, "matrix2"));
        mf_gguf_close(file);
        free(data);
    }
    ggufgen_free(&g);
}

static void test_small(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    g.alignment = 8;
    ggufgen_u32(&g, "general.alignment", 8);
    ggufgen_tensor(&g, "a", MF_TYPE_F32, 1, (const uint64_t[]){1}, f32_data, 4);
    ggufgen_tensor(&g, "b", MF_TYPE_F32, 1, (const uint64_t[]){1}, f32_data, 4);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    assert_int_equal(mf_gguf_alignment(file), 8);
    assert_int_equal(mf_gguf_tensor_at(file, 1)->data - mf_gguf_tensor_at(file, 0)->data, 8);
    mf_gguf_close(file);
    free(data);
    ggufgen_free(&g);

    ggufgen_init(&g); // a header alone is a file too
    data = ggufgen_finish(&g, &size);
    file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    assert_int_equal(mf_gguf_n_values(file), 0);
    assert_int_equal(mf_gguf_n_tensors(file), 0);
    assert_null(mf_gguf_find_tensor(file, "a"));
    mf_gguf_close(file);
    free(data);
    mf_gguf_close(NULL);
}

// The metadata of general.* of every surprising kind opens and is refused where it is asked for.
static void test_surprising_kinds(void **state) {
    (void)state;
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_u32(&g, "general.architecture", 1);
    ggufgen_array(&g, "general.name", MF_GGUF_ARRAY, 1, "\x04\0\0\0\1\0\0\0\0\0\0\0\x2a\0\0\0", 16);
    ggufgen_f32(&g, "general.file_type", 2);
    size_t size;
    uint8_t *data = ggufgen_finish(&g, &size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    assert_non_null(file);
    mf_str s;
    uint32_t u;
    assert_false(mf_gguf_get_str(file, "general.architecture", &s, &err));
    assert_false(mf_gguf_get_str(file, "general.name", &s, &err));
    assert_string_equal(err.text, "key 'general.name' is an array of array, not a string");
    assert_false(mf_gguf_get_u32(file, "general.file_type", &u, &err));
    ggufwalk(file);
    mf_gguf_close(file);
    free(data);
    ggufgen_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_arrays), cmocka_unit_test(test_typed),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_small),  cmocka_unit_test(test_surprising_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
