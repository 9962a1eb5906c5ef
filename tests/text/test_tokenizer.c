// Encoding and decoding over small vocabularies: what each rule of docs/tokenizer.md does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/tiny_vocab.h"

typedef struct fixture {
    tiny_vocab v;
    uint8_t *bytes;
    mf_gguf *file;
    mf_tokenizer *t;
    mf_error err;
} fixture;

static fixture f;

static void make(const mf_tokenizer_options *opts) {
    size_t size;
    f.err = (mf_error){0};
    f.bytes = tiny_build(&f.v, &size);
    f.file = mf_gguf_open_memory(f.bytes, size, &f.err);
    if (!f.file) fail_msg("%s", f.err.text);
    f.t = mf_tokenizer_new(f.file, opts, &f.err);
    if (!f.t) fail_msg("%s", f.err.text);
}

static int drop(void **state) {
    (void)state;
    mf_tokenizer_free(f.t);
    mf_gguf_close(f.file);
    free(f.bytes);
    f.t = NULL;
    f.file = NULL;
    f.bytes = NULL;
    return 0;
}

static void expect_spans(const mf_text_span *spans, size_t n_spans, unsigned flags, const int32_t *want, size_t n) {
    mf_token_array ids = {0};
    if (!mf_tokenizer_encode_spans(f.t, spans, n_spans, flags, &ids, &f.err)) fail_msg("%s", f.err.text);
    for (size_t i = 0; i < ids.len && i < n; i++) assert_int_equal(ids.data[i], want[i]);
    assert_int_equal(ids.len, n);
    free(ids.data);
}

#define EXPECT(text, flags, ...)                                             \
    do {                                                                     \
        const int32_t want[] = {__VA_ARGS__};                                \
        mf_text_span span = {MF_STR(text), (flags)&MF_ENCODE_PARSE_CONTROL}; \
        expect_spans(&span, 1, flags, want, sizeof want / sizeof *want);     \
    } while (0)

static void expect_text(const int32_t *ids, size_t n, bool special, bool start, mf_str want, int dropped) {
    mf_buf out = {0};
    mf_decoder d;
    mf_decoder_init(&d, f.t, special, start);
    for (size_t i = 0; i < n; i++) mf_decoder_feed(&d, ids[i], &out);
    assert_int_equal(mf_decoder_finish(&d), dropped);
    assert_int_equal(out.len, want.len);
    if (want.len) assert_memory_equal(out.data, want.ptr, want.len);
    free(out.data);
}

#define EXPECT_TEXT(special, start, dropped, text, ...)                                    \
    do {                                                                                   \
        const int32_t ids[] = {__VA_ARGS__};                                               \
        expect_text(ids, sizeof ids / sizeof *ids, special, start, MF_STR(text), dropped); \
    } while (0)

static void test_bpe_merges(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    EXPECT("hello", 0, TINY_HELLO);
    EXPECT("hello hello", 0, TINY_HELLO, TINY_SPACE_HELLO);
    EXPECT("hell", 0, TINY_HELL);
    EXPECT("lll", 0, TINY_LL, 'l');
    EXPECT("ehe", 0, 'e', TINY_HE);
    EXPECT("\xC3\xA9", 0, 0xC3, 0xA9);
    expect_spans(NULL, 0, 0, NULL, 0);
}

static void test_bpe_takes_any_bytes(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    EXPECT("\xFFhello\xC3", 0, 0xFF, TINY_HELLO, 0xC3);
    EXPECT("he\x80llo", 0, TINY_HE, 0x80, TINY_LL, 'o');
    EXPECT("\xED\xA0\x80", 0, 0xED, 0xA0, 0x80); // a surrogate is not UTF-8
    EXPECT("\0\0", 0, 0, 0);
}

static void test_special_tokens(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    EXPECT("<|im_start|>hello<|im_end|>", MF_ENCODE_PARSE_CONTROL, TINY_IM_START, TINY_HELLO, TINY_IM_END);
    EXPECT("<|im_end|>", 0, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>');
    EXPECT("<think>hello</think>", 0, TINY_THINK, TINY_HELLO, TINY_THINK_END);
    EXPECT("<think>ing<think>in", 0, TINY_THINKING, TINY_THINK, 'i', 'n'); // the longest
    EXPECT("<<think>", 0, '<', TINY_THINK);
    EXPECT("<think>", MF_ENCODE_PLAIN, '<', 't', 'h', 'i', 'n', 'k', '>');
    EXPECT("<|im_end|>", MF_ENCODE_PLAIN | MF_ENCODE_PARSE_CONTROL, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>');
    EXPECT("<think", 0, '<', 't', 'h', 'i', 'n', 'k');
}

static void test_spans(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    const mf_text_span crossing[] = {{MF_STR("he"), true}, {MF_STR("llo"), false}};
    expect_spans(crossing, 2, 0, (const int32_t[]){TINY_HELLO}, 1);
    const mf_text_span split[] = {{MF_STR("<|im_"), true}, {MF_STR(""), false}, {MF_STR("end|>"), true}};
    expect_spans(split, 3, 0, (const int32_t[]){TINY_IM_END}, 1);
    const mf_text_span partly[] = {{MF_STR("<|im_end"), true}, {MF_STR("|>"), false}};
    expect_spans(partly, 2, 0, (const int32_t[]){'<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>'}, 10);
    const mf_text_span message[] = {{MF_STR("<|im_end|>"), true},
                                    {MF_STR("<think>"), false},
                                    {MF_STR("<|im_end|>"), false},
                                    {MF_STR("<|im_end|>"), true}};
    const int32_t want[] = {TINY_IM_END, TINY_THINK, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>', TINY_IM_END};
    expect_spans(message, 4, 0, want, sizeof want / sizeof *want);
}

static void test_bos_and_eos(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    f.v.add_bos = f.v.add_eos = 1;
    make(NULL);
    assert_true(mf_tokenizer_add_bos(f.t) && mf_tokenizer_add_eos(f.t));
    EXPECT("hello", MF_ENCODE_ADD_SPECIAL, TINY_END, TINY_HELLO, TINY_END);
    EXPECT("hello", MF_ENCODE_ADD_BOS, TINY_END, TINY_HELLO);
    EXPECT("<|endoftext|>hello", MF_ENCODE_ADD_BOS | MF_ENCODE_PARSE_CONTROL, TINY_END, TINY_HELLO); // its own
    EXPECT("<|endoftext|>", MF_ENCODE_ADD_SPECIAL | MF_ENCODE_PARSE_CONTROL, TINY_END, TINY_END);
    EXPECT("hello<|endoftext|>", MF_ENCODE_ADD_BOS | MF_ENCODE_PARSE_CONTROL, TINY_END, TINY_HELLO, TINY_END);
    EXPECT("", MF_ENCODE_ADD_SPECIAL, TINY_END, TINY_END);
    expect_spans(&(mf_text_span){{NULL, 0}, true}, 1, 0, NULL, 0);
    EXPECT("hello", 0, TINY_HELLO);
}

static void test_accessors(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    f.v.eot = -1;
    make(NULL);
    assert_int_equal(mf_tokenizer_n_vocab(f.t), TINY_THINKING + 1);
    assert_string_equal(mf_tokenizer_model(f.t), "gpt2");
    assert_string_equal(mf_tokenizer_pre(f.t), "qwen2");
    assert_int_equal(mf_tokenizer_bos(f.t), TINY_END);
    assert_int_equal(mf_tokenizer_eos(f.t), TINY_END);
    assert_int_equal(mf_tokenizer_eot(f.t), TINY_IM_END); // found by its text
    assert_int_equal(mf_tokenizer_unk(f.t), -1);
    assert_int_equal(mf_tokenizer_pad(f.t), -1);
    assert_false(mf_tokenizer_add_bos(f.t));
    assert_true(mf_tokenizer_is_eog(f.t, TINY_END) && mf_tokenizer_is_eog(f.t, TINY_IM_END));
    assert_false(mf_tokenizer_is_eog(f.t, TINY_IM_START) || mf_tokenizer_is_eog(f.t, 'a'));
    assert_false(mf_tokenizer_is_eog(f.t, -1) || mf_tokenizer_is_eog(f.t, 100000));
    assert_int_equal(mf_tokenizer_find(f.t, MF_STR("hello")), TINY_HELLO);
    assert_int_equal(mf_tokenizer_find(f.t, MF_STR("hullo")), -1);
    assert_int_equal(mf_tokenizer_type(f.t, TINY_IM_END), MF_TOKEN_CONTROL);
    assert_int_equal(mf_tokenizer_type(f.t, TINY_THINK), MF_TOKEN_USER_DEFINED);
    assert_true(mf_str_is(mf_tokenizer_text(f.t, TINY_SPACE_HELLO), "\xC4\xA0hello"));
}

static void test_types_are_found_by_text(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    f.v.n_types = 0; // a file without types: the chat tokens are control all the same
    make(NULL);
    EXPECT("<|im_start|>a<|im_end|><think>", MF_ENCODE_PARSE_CONTROL, TINY_IM_START, 'a', TINY_IM_END, '<', 't', 'h', 'i',
           'n', 'k', '>');
}

// Tokens beside EOS and EOT that end an answer: by their keys, and the first of their texts where there is no key.
static void test_what_ends_an_answer(void **state) {
    (void)state;
    static const char *const texts[] = {"<|fim_pad|>", "<PAD>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>", "<reponame>"};
    for (int keyed = 0; keyed < 2; keyed++) {
        tiny_bpe(&f.v);
        int first = (int)f.v.n;
        for (int i = 0; i < 6; i++) tiny_add(&f.v, texts[i], i < 4 ? MF_TOKEN_USER_DEFINED : MF_TOKEN_CONTROL, 0);
        if (keyed) f.v.eom = TINY_HELLO, f.v.fim[0] = TINY_HE, f.v.fim[1] = TINY_LL, f.v.fim[2] = TINY_HELL;
        f.v.pad = keyed ? 100000 : 'p'; // a notice
        make(NULL);
        for (int i = 0; i < 6; i++)
            assert_int_equal(mf_tokenizer_is_eog(f.t, first + i), !keyed && (i == 0 || i == 2 || i == 4));
        assert_int_equal(mf_tokenizer_is_eog(f.t, TINY_HELLO), keyed);
        assert_int_equal(mf_tokenizer_is_eog(f.t, TINY_HE), keyed);
        assert_int_equal(mf_tokenizer_is_eog(f.t, TINY_LL), keyed);
        assert_int_equal(mf_tokenizer_is_eog(f.t, TINY_HELL), keyed);
        assert_int_equal(mf_tokenizer_pad(f.t), keyed ? -1 : 'p');
        for (int32_t id = 0; id < mf_tokenizer_n_vocab(f.t); id++)
            if (mf_tokenizer_is_eog(f.t, id)) assert_int_equal(mf_tokenizer_type(f.t, id), MF_TOKEN_CONTROL);
        drop(NULL);
    }
    tiny_bpe(&f.v);
    f.v.eom = TINY_THINK; // user-defined: it says nothing, and no message says it
    make(NULL);
    EXPECT_TEXT(false, true, 0, "", TINY_THINK);
    EXPECT("<think>", 0, '<', 't', 'h', 'i', 'n', 'k', '>');
}

static void test_ignore_merges(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    f.v.pre = "llama-bpe";
    f.v.n_merges = 1;
    make(NULL);
    assert_true(mf_tokenizer_add_bos(f.t));
    EXPECT("hello hell", 0, TINY_HELLO, ' ', TINY_HE, 'l', 'l');
}

static void test_nfc(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    EXPECT("e\xCC\x81", 0, 0xC3, 0xA9);                                  // e + acute: é
    EXPECT("<think>\xCC\x81", 0, TINY_THINK, 0xCC, 0x81);                // not across a special token
    EXPECT("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", 0, 0xEA, 0xB0, 0x81); // Hangul jamo: 각
    EXPECT("q\xCC\x87\xCC\xA3", 0, 'q', 0xCC, 0xA3, 0xCC, 0x87);         // marks in canonical order
    EXPECT("\xE2\x84\xAB", 0, 0xC3, 0x85);                               // Ångström sign: Å
    EXPECT("\xFF"
           "e\xCC\x81\xFF",
           0, 0xFF, 0xC3, 0xA9, 0xFF);
    drop(NULL);
    make(&(mf_tokenizer_options){.no_nfc = true});
    EXPECT("e\xCC\x81", 0, 'e', 0xCC, 0x81);
    drop(NULL);
    f.v.pre = "smollm";
    make(NULL);
    EXPECT("e\xCC\x81", 0, 'e', 0xCC, 0x81);
}

static void test_missing_bytes_are_left_out(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    f.v.tokens[0x04] = "hole";
    f.v.tokens[0xFF] = "hole2";
    make(NULL);
    EXPECT("a\x04"
           "b\xFF",
           0, 'a', 'b');
    EXPECT("he\x04llo", 0, TINY_HE, TINY_LL, 'o');
}

static void test_decoder(void **state) {
    (void)state;
    tiny_bpe(&f.v);
    make(NULL);
    EXPECT_TEXT(false, true, 0, "hello hello", TINY_HELLO, TINY_SPACE_HELLO);
    EXPECT_TEXT(false, true, 0, "hello<think>", TINY_IM_START, TINY_HELLO, TINY_THINK, TINY_IM_END);
    EXPECT_TEXT(true, true, 0, "<|im_start|>a", TINY_IM_START, 'a');
    EXPECT_TEXT(false, true, 2, "a", 'a', 0xF0, 0x9F); // a stop inside a character
    EXPECT_TEXT(false, true, 0, "\xF0\x9F\x91\x8D", 0xF0, 0x9F, 0x91, 0x8D);
    EXPECT_TEXT(false, true, 0,
                "\xF0\x9F"
                "a",
                0xF0, 0x9F, 'a'); // can't become UTF-8: as they are
    EXPECT_TEXT(false, true, 0, "\xFF\x80", 0xFF, 0x80);
    mf_buf out = {0};
    mf_decoder d;
    mf_decoder_init(&d, f.t, false, true);
    mf_decoder_feed(&d, 0xE2, &out);
    mf_decoder_feed(&d, 0x82, &out);
    assert_int_equal(out.len, 0); // waits
    mf_decoder_feed(&d, 0xAC, &out);
    assert_string_equal(out.data, "\xE2\x82\xAC");
    free(out.data);
}

static void test_spm(void **state) {
    (void)state;
    tiny_spm(&f.v);
    make(NULL);
    assert_string_equal(mf_tokenizer_model(f.t), "llama");
    EXPECT("", MF_ENCODE_ADD_SPECIAL, 1);
    EXPECT("a", 0, SPM_SPACE_A);
    EXPECT("a<mark>a", MF_ENCODE_CONTINUED, SPM_A, SPM_MARK, SPM_SPACE_A);
    EXPECT("ba", 0, SPM_SPACE, SPM_BA);
    EXPECT("aab", 0, SPM_SPACE_A, SPM_AB);
    EXPECT("bab", 0, SPM_SPACE, SPM_BA, SPM_B);                   // "ba" scores higher than "ab"
    EXPECT("b  a", 0, SPM_SPACE, SPM_B, SPM_SPACES, SPM_SPACE_A); // the prefix again behind a special token
    EXPECT("x", 0, SPM_SPACE, SPM_BYTES + 'x');
    EXPECT("\xC3\xA9\xFF", 0, SPM_SPACE, SPM_BYTES + 0xC3, SPM_BYTES + 0xA9, SPM_BYTES + 0xFF);
    EXPECT("<s>a", MF_ENCODE_PARSE_CONTROL, 1, SPM_SPACE_A);
    EXPECT("<mark>b", 0, SPM_MARK, SPM_SPACE, SPM_B);
    EXPECT("<0x61>", 0, SPM_SPACE, SPM_BYTES + '<', SPM_BYTES + '0', SPM_BYTES + 'x', SPM_BYTES + '6', SPM_BYTES + '1',
           SPM_BYTES + '>');
    EXPECT("aba", 0, SPM_SPACE_A, SPM_BA);
    drop(NULL);
    f.v.add_space_prefix = 0;
    make(NULL);
    EXPECT("a", 0, SPM_A);
    EXPECT("b a", 0, SPM_B, SPM_SPACE_A);
    EXPECT("b \xE2\x96\x81", 0, SPM_B, SPM_SPACES); // U+2581 is a space to SentencePiece
}

static void test_spm_unused_pieces_come_apart(void **state) {
    (void)state;
    tiny_spm(&f.v);
    f.v.add_space_prefix = 0;
    f.v.scores[SPM_SPACE_A] = -20;
    make(NULL);
    EXPECT("aba", 0, SPM_A, SPM_BA); // a+ba makes "aba", which is unused
}

static void test_spm_without_bytes(void **state) {
    (void)state;
    tiny_spm(&f.v);
    for (int b = 0; b < 256; b++) f.v.types[SPM_BYTES + b] = MF_TOKEN_UNUSED;
    make(NULL);
    EXPECT("xya", 0, SPM_SPACE, 0, SPM_A); // one unknown token for the run
}

// Phi-3's special tokens take the white space behind them, but <s>, <unk> and <|endoftext|> do not.
static void test_phi3(void **state) {
    (void)state;
    static const char *const names[] = {"Phi 3 mini", "Phi-3-mini-4k-instruct", "phi3"};
    for (int i = 0; i < 4; i++) {
        tiny_spm(&f.v);
        f.v.name = i < 3 ? names[i] : "Phi-2";
        f.v.types[SPM_SPACES] = MF_TOKEN_NORMAL; // no match of its own
        make(NULL);
        if (i < 3) {
            EXPECT("<mark> \n\t a", 0, SPM_MARK, SPM_SPACE_A);
            EXPECT("</s>  a</s>", MF_ENCODE_PARSE_CONTROL, 2, SPM_SPACE_A, 2);
        } else {
            EXPECT("<mark>\na", 0, SPM_MARK, SPM_SPACE, SPM_BYTES + '\n', SPM_A);
        }
        EXPECT("<s>\na", MF_ENCODE_PARSE_CONTROL, 1, SPM_SPACE, SPM_BYTES + '\n', SPM_A);
        if (i < 3) drop(NULL);
    }
}

static void test_spm_decoder(void **state) {
    (void)state;
    tiny_spm(&f.v);
    make(NULL);
    EXPECT_TEXT(false, true, 0, "a a", SPM_SPACE_A, SPM_SPACE_A);
    EXPECT_TEXT(false, true, 0, "a", 1, SPM_SPACE_A); // BOS does not use up the rule
    EXPECT_TEXT(false, false, 0, " a", SPM_SPACE_A);  // the continuation of a prompt
    EXPECT_TEXT(false, true, 0, "\xC3\xA9", SPM_SPACE, SPM_BYTES + 0xC3, SPM_BYTES + 0xA9);
    EXPECT_TEXT(false, true, 0, "b  <mark>", SPM_B, SPM_SPACES, SPM_MARK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_bpe_merges, drop),
        cmocka_unit_test_teardown(test_bpe_takes_any_bytes, drop),
        cmocka_unit_test_teardown(test_special_tokens, drop),
        cmocka_unit_test_teardown(test_spans, drop),
        cmocka_unit_test_teardown(test_bos_and_eos, drop),
        cmocka_unit_test_teardown(test_accessors, drop),
        cmocka_unit_test_teardown(test_types_are_found_by_text, drop),
        cmocka_unit_test_teardown(test_what_ends_an_answer, drop),
        cmocka_unit_test_teardown(test_ignore_merges, drop),
        cmocka_unit_test_teardown(test_nfc, drop),
        cmocka_unit_test_teardown(test_missing_bytes_are_left_out, drop),
        cmocka_unit_test_teardown(test_decoder, drop),
        cmocka_unit_test_teardown(test_spm, drop),
        cmocka_unit_test_teardown(test_spm_unused_pieces_come_apart, drop),
        cmocka_unit_test_teardown(test_spm_without_bytes, drop),
        cmocka_unit_test_teardown(test_phi3, drop),
        cmocka_unit_test_teardown(test_spm_decoder, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
