// Split files: any part opens all, and parts that do not belong together are refused by name.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "support/folder.h"
#include "support/ggufgen.h"
#include "support/ggufwalk.h"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    return folder_make(folder, "split") ? 0 : -1;
}

static const char *path_of(int no, int count, char out[128]) {
    snprintf(out, 128, "%s/model-%05d-of-%05d.gguf", folder, no + 1, count);
    return out;
}

static int remove_folder(void **state) {
    (void)state;
    char path[128];
    for (int count = 1; count <= 3; count++)
        for (int no = 0; no < 3; no++) unlink(path_of(no, count, path));
    snprintf(path, sizeof path, "%s/other.gguf", folder);
    unlink(path);
    return rmdir(folder);
}

typedef struct part {
    int no, count, tensors; // negative: the key is left out
    const char *architecture;
    const char *names[2];
} part;

static void write_part(const part *p, const char *path) {
    ggufgen g;
    ggufgen_init(&g);
    if (p->architecture) ggufgen_str(&g, "general.architecture", p->architecture);
    if (p->no >= 0) ggufgen_u32(&g, "split.no", (uint32_t)p->no);
    if (p->count >= 0) ggufgen_u32(&g, "split.count", (uint32_t)p->count);
    if (p->tensors >= 0) ggufgen_u32(&g, "split.tensors.count", (uint32_t)p->tensors);
    for (int i = 0; i < 2; i++) {
        const float value[2] = {(float)p->no, (float)i};
        if (p->names[i]) ggufgen_tensor(&g, p->names[i], MF_TYPE_F32, 1, (const uint64_t[]){2}, value, sizeof value);
    }
    ggufgen_write(&g, path);
    ggufgen_free(&g);
}

static const part good[3] = {
    {0, 3, 4, "llama", {"a", "b"}},
    {1, 3, 4, NULL, {"c"}},
    {2, 3, 4, NULL, {"d"}},
};

static void write_good(void) {
    char path[128];
    for (int i = 0; i < 3; i++) write_part(&good[i], path_of(i, 3, path));
}

static void test_any_part(void **state) {
    (void)state;
    write_good();
    for (int given = 0; given < 3; given++) {
        char path[128];
        mf_error err = {0};
        mf_gguf *file = mf_gguf_open(path_of(given, 3, path), &err);
        if (!file) fail_msg("%s", err.text);
        assert_int_equal(mf_gguf_n_parts(file), 3);
        assert_int_equal(mf_gguf_n_tensors(file), 4);
        static const struct {
            const char *name;
            uint32_t part;
            float values[2];
        } wanted[4] = {{"a", 0, {0, 0}}, {"b", 0, {0, 1}}, {"c", 1, {1, 0}}, {"d", 2, {2, 0}}};
        for (size_t i = 0; i < 4; i++) {
            const mf_gguf_tensor *t = mf_gguf_find_tensor(file, wanted[i].name);
            assert_ptr_equal(t, mf_gguf_tensor_at(file, i)); // in the order of the parts, whichever was given
            assert_int_equal(t->part, wanted[i].part);
            assert_memory_equal(t->data, wanted[i].values, 8);
        }
        mf_str architecture = {"", 0};
        assert_true(mf_gguf_get_str(file, "general.architecture", &architecture, &err));
        assert_true(mf_str_is(architecture, "llama")); // metadata is the first part's
        ggufwalk(file);                                // drops the pages too
        for (size_t i = 0; i < 4; i++) assert_memory_equal(mf_gguf_tensor_at(file, i)->data, wanted[i].values, 8);
        mf_gguf_close(file);
    }
}

// Replaces one part, opens from part `given` and expects a sentence that names the file.
static void refuse_part(const part *p, int no, int given, const char *sentence) {
    char path[128], name[40];
    write_good();
    write_part(p, path_of(no, 3, path));
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open(path_of(given, 3, path), &err);
    if (file) fail_msg("opened, instead of: %s", sentence);
    snprintf(name, sizeof name, "model-%05d-of-00003.gguf", no + 1);
    if (!strstr(err.text, sentence) || !strstr(err.text, name)) fail_msg("'%s' instead of '%s'", err.text, sentence);
}

static void test_wrong_parts(void **state) {
    (void)state;
    refuse_part(&good[0], 1, 0, "a repeated or misnamed part: its name says part 2, 'split.no' says 1");
    refuse_part(&good[2], 1, 0, "a repeated or misnamed part: its name says part 2, 'split.no' says 3");
    refuse_part(&good[1], 0, 0, "part 2 of a split file of 3 must be named like NAME-00002-of-00003.gguf");
    refuse_part(&(part){1, 4, 4, NULL, {"c"}}, 1, 0, "a foreign part: it is of 4 parts ('split.count')");
    refuse_part(&(part){1, 3, 5, NULL, {"c"}}, 1, 2, "a foreign part: it is of 5 tensors in all");
}

static void test_contents(void **state) {
    (void)state;
    refuse_part(&(part){1, 3, 4, "qwen2", {"c"}}, 1, 0, "a foreign part: its 'general.architecture' is not that of");
    refuse_part(&(part){-1, 3, 4, NULL, {"c"}}, 1, 0, "key 'split.no' is missing from this part of a split file");
    refuse_part(&(part){1, -1, 4, NULL, {"c"}}, 1, 0, "key 'split.count' is missing");
    refuse_part(&(part){1, 3, -1, NULL, {"c"}}, 1, 1, "key 'split.tensors.count' is missing");
    refuse_part(&(part){1, 3, 4, NULL, {"b"}}, 1, 0, "tensor 'b' is there twice");
    refuse_part(&(part){0, 3, 4, "llama", {"a"}}, 0, 0, "key 'split.tensors.count' is 4, the 3 parts hold 3 tensors");
    refuse_part(&(part){7, 3, 4, NULL, {"c"}}, 1, 1, "'split.no' is 7 with a 'split.count' of 3");
}

static void test_missing_part(void **state) {
    (void)state;
    char path[128];
    write_good();
    unlink(path_of(1, 3, path));
    mf_error err = {0};
    assert_null(mf_gguf_open(path_of(2, 3, path), &err));
    assert_non_null(strstr(err.text, "part 2 of 3: "));
    assert_non_null(strstr(err.text, "model-00002-of-00003.gguf"));
}

static void test_other_name(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/other.gguf", folder);
    write_part(&good[0], path);
    mf_error err = {0};
    assert_null(mf_gguf_open(path, &err));
    assert_non_null(strstr(err.text, "other.gguf: part 1 of a split file of 3 must be named like NAME-00001-of-00003.gguf"));
    write_part(&(part){0, 100000, 4, NULL, {"a"}}, path);
    assert_null(mf_gguf_open(path, &err));
    assert_non_null(strstr(err.text, "'split.no' is 0 with a 'split.count' of 100000"));
    write_part(&(part){0, 1, 1, "llama", {"a"}}, path); // one part is a whole file, whatever its name
    mf_gguf *file = mf_gguf_open(path, &err);
    assert_non_null(file);
    assert_int_equal(mf_gguf_n_parts(file), 1);
    mf_gguf_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_part),     cmocka_unit_test(test_wrong_parts), cmocka_unit_test(test_contents),
        cmocka_unit_test(test_missing_part), cmocka_unit_test(test_other_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
