// Constraints: what grammars and schemas allow, where a text is rejected, what is refused, and that masks are what taking each token in turn
// says.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sample/grammar/constraint.h"

// Holds texts against a constraint: "=text" is accepted, "~text" incomplete, "N!text" rejected at byte N.
static void check_texts(mf_constraint *c, const char *const *texts) {
    for (; *texts; texts++) {
        char *end;
        long at = strtol(*texts, &end, 10);
        size_t where = 0;
        mf_error err = {0};
        mf_check want = *end == '=' ? MF_CHECK_ACCEPTED : *end == '~' ? MF_CHECK_INCOMPLETE : MF_CHECK_REJECTED;
        mf_check got = mf_constraint_check(c, mf_str_of(end + 1), &where, &err);
        if (got != want || (got == MF_CHECK_REJECTED && where != (size_t)at))
            fail_msg("'%s': %s at %zu %s", *texts,
                     got == MF_CHECK_ACCEPTED     ? "accepted"
                     : got == MF_CHECK_INCOMPLETE ? "incomplete"
                                                  : "rejected",
                     where, err.text);
    }
}

static void gbnf(const char *grammar, const char *const *texts) {
    mf_error err = {0};
    mf_constraint *c = mf_constraint_of_gbnf(mf_str_of(grammar), NULL, NULL, &err);
    if (!c) fail_msg("%s: %s", grammar, err.text);
    check_texts(c, texts);
    mf_constraint_drop(c);
}

static void schema_with(const char *schema, const mf_schema_options *options, const char *const *texts) {
    mf_error err = {0};
    mf_constraint *c = mf_constraint_of_schema(mf_str_of(schema), options, NULL, NULL, &err);
    if (!c) fail_msg("%s: %s", schema, err.text);
    check_texts(c, texts);
    mf_constraint_drop(c);
}

static void schema(const char *schema_text, const char *const *texts) { schema_with(schema_text, NULL, texts); }

static void refused(bool is_schema, const char *text, const char *why) {
    mf_error err = {0};
    mf_constraint *c = is_schema ? mf_constraint_of_schema(mf_str_of(text), NULL, NULL, NULL, &err)
                                 : mf_constraint_of_gbnf(mf_str_of(text), NULL, NULL, &err);
    if (c) fail_msg("%s is not refused", text);
    if (!strstr(err.text, why)) fail_msg("%s: '%s' does not say '%s'", text, err.text, why);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

// ---- GBNF

static void grammars(void **state) {
    (void)state;
    gbnf("root ::= \"a\" [b-d]+ (\"x\" | \"yy\"){2,3} # comment\n",
         TEXTS("=abcxx", "~abcx", "=abcxyyx", "6!abcxxxx", "~ab", "0!e"));
    gbnf("root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"", TEXTS("=- hi\n- ho\n", "~- \xc3\xa9", "1!-\n", "2!- \xff"));
    gbnf("root ::= \"a\" root | \"a\"", TEXTS("=a", "=aaaa", "1!ab"));
    gbnf("root ::= (\"a\" | \"aa\")*", TEXTS("=", "=a", "=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    gbnf("root ::= \"a\"{100000} \"b\"", TEXTS("~aaa", "3!aaab"));
    gbnf("root ::= (\"x\"{0,1000000} \",\"){0,1000000}", TEXTS("=", "=x,xx,,", "~x,x"));
    gbnf("root ::= ([a-z]? \"1\"?){2,4}", TEXTS("=", "=a1b", "=a1b1c1d1", "8!a1b1c1d1e"));
    gbnf("root ::= e\ne ::= t ((\"+\" | \"-\") t)*\nt ::= [0-9]+ | \"(\" e \")\"",
         TEXTS("=1+(2-(3))", "~((1", "0!)", "3!(1)("));
    gbnf("root ::= .\n", TEXTS("=\xf0\x9f\x98\x80", "=a", "1!ab", "0!\x80", "1!\xe0\x80"));
    gbnf("root ::= \"\\u00e9\\x41\\n\\\"\"", TEXTS("=\xc3\xa9"
                                                   "A\n\"",
                                                   "~\xc3"));
    gbnf("root ::= \"a\"\n  | \"b\"\n  | \"c\"\n", TEXTS("=a", "=b", "=c"));
    gbnf("root ::= x{0} \"b\"\nx ::= \"a\"", TEXTS("=b", "0!a"));
    gbnf("root ::= \"a\" nothing? \"b\" | \"c\" nothing\nnothing ::= []", TEXTS("=ab", "0!c"));
}

static void grammars_that_are_refused(void **state) {
    (void)state;
    refused(false, "root ::= root \"a\" | \"b\"", "the rule 'root' of line 1 begins with itself");
    refused(false, "root ::= a\na ::= b? a2\na2 ::= a \"x\"\nb ::= \"b\"", "begins with itself");
    refused(false, "root ::= \"a\"\nb ::= x", "the rule 'x', used in line 2, is not defined");
    refused(false, "a ::= \"a\"", "no rule 'root'");
    refused(false, "root ::= \"a", "line 1, column 10: a literal that does not end");
    refused(false, "root ::= [a", "a class that does not end");
    refused(false, "root ::= (\"a\"", "a group that does not end");
    refused(false, "root ::= \"a\"{3,2}", "backwards");
    refused(false, "root ::= \"\\q\"", "an unknown escape");
    refused(false, "root := \"a\"", "'::=' was expected");
    refused(false, "root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: a rule that was defined before");
    refused(false, "root ::= <tool>", "tokens can only be named beside a model");
    refused(false, "root ::= []", "allows nothing");
    refused(false, "", "no rule 'root'");
}

// ---- JSON Schema

static void schemas(void **state) {
    (void)state;
    schema("{}", TEXTS("={\"a\": [1, 2.5e3, null, true]}", "= \"x\\u00e9\\ud83d\\ude00\"", "~[1", "7!{\"a\":1,}", "1!01",
                       "7!\"\\ud800\"", "1!1 "));
    schema("true", TEXTS("=1"));
    schema(
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":3},\"age\":{\"type\":\"integer\","
        "\"minimum\":0,\"maximum\":150}},\"required\":[\"name\"],\"additionalProperties\":false}",
        TEXTS("={\"name\":\"abc\",\"age\":150}", "13!{\"name\": \"abcd\"}", "2!{\"age\":1}", "={\"name\":\"\\u0041b\"}",
              "19!{\"name\":\"\",\"age\":151}", "={\"name\":\"\\ud83d\\ude00ab\"}"));
    schema("{\"type\":\"string\",\"pattern\":\"^(ab)+$\",\"maxLength\":5}", TEXTS("=\"abab\"", "5!\"ababa\"", "~\"ab"));
    schema("{\"type\":\"string\",\"pattern\":\"^(ab)+$\",\"minLength\":5,\"maxLength\":7}",
           TEXTS("=\"ababab\"", "5!\"abab\""));
    schema("{\"type\":\"string\",\"pattern\":\"b\",\"minLength\":2,\"maxLength\":4,\"format\":\"hostname\"}",
           TEXTS("=\"ab\"", "=\"bc\"", "2!\"b\"", "9!\"aa\\u0061a\"", "4!\"aaaaa\""));
    schema("{\"type\":\"string\",\"maxLength\":100000}", TEXTS("=\"\"", "~\"abc"));
    schema("{\"type\":\"number\",\"exclusiveMinimum\":-1.5,\"maximum\":2.25}",
           TEXTS("3!-1.5", "=-1.4999", "3!-1.50001", "=2.25", "=2.250", "3!2.26", "=0", "=-0.0", "2!2.3", "0!3", "1!-2"));
    schema("{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":10}", TEXTS("=14", "~7", "=21", "0!0", "~15", "=700"));
    schema("{\"type\":\"integer\",\"minimum\":-3,\"exclusiveMaximum\":100}", TEXTS("=-3", "1!-4", "=99", "2!100", "=0"));
    schema(
        "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"n\":"
        "{\"anyOf\":[{\"$ref\":\"#/$defs/"
        "t\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"n\"],\"additionalProperties\":false}}}",
        TEXTS("={\"v\":1,\"n\":{\"v\":2,\"n\":null}}", "11!{\"v\":1,\"n\":3}"));
    schema("{\"type\":\"string\",\"format\":\"date\"}",
           TEXTS("=\"2024-02-29\"", "10!\"2023-02-29\"", "=\"2000-02-29\"", "10!\"1900-02-29\"", "10!\"2024-04-31\""));
    schema("{\"type\":\"string\",\"format\":\"ipv6\"}",
           TEXTS("=\"1::d6:192.168.0.1\"", "=\"1:2::192.168.0.1\"", "=\"1:2:3:4:5::1.2.3.4\"", "15!\"1:2:3:4:5:6::1.2.3.4\"",
                 "=\"::\"", "=\"1:2:3:4:5:6:7::\"", "5!\"12345::\""));
    schema("{\"type\":\"string\",\"format\":\"hostname\"}",
           TEXTS("=\"a-b.example\"", "=\"a--b\"", "4!\"ab--c\"", "=\"a1-b-\\u0063\"", "3!\"a-.b\"", "=\"a.b.c\""));
    schema("{\"type\":\"string\",\"format\":\"hostname\",\"pattern\":\"^(abcdefghi\\\\.){25}\"}",
           TEXTS("=\"abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi."
                 "abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi."
                 "abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abc\"",
                 "254!\"abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi."
                 "abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi."
                 "abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcd\""));
    schema("{\"type\":\"string\",\"format\":\"uri\"}",
           TEXTS("=\"ldap://[2001:db8::7]/c=GB?objectClass?one\"", "23!\"http://example.com:abc/path\"", "=\"http://a:80/\"",
                 "=\"urn:a:b\"", "=\"file:///etc/x\"", "=\"a:\"", "=\"http://u:p@h/%41#x?\"", "9!\"http://[zz]/\"",
                 "=\"mailto:a@b.c\"", "1!\"/abc\""));
    schema("{\"enum\":[\"red\",\"green\",1,null,{\"a\":[1]}]}",
           TEXTS("=\"red\"", "=1", "0!2", "=null", "={ \"a\" : [ 1 ] }", "~\"re"));
    schema("{\"properties\":{\"a\":{\"type\":\"string\",\"minLength\":2,\"pattern\":\"^b?$\"}},\"type\":\"object\"}",
           TEXTS("={}", "={\"b\":1}", "3!{\"a\":\"b\"}"));
    schema("{\"enum\":[1,2,3,\"x\"],\"minimum\":2}", TEXTS("0!1", "=2", "=3", "=\"x\""));
    schema("{\"const\":5,\"type\":[\"integer\",\"null\"]}", TEXTS("=5", "0!null"));
    schema(
        "{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\"]},\"uniqueItems\":true,\"minItems\":2}",
        TEXTS("=[\"a\",\"b\"]", "6![\"a\",\"a\"]", "4![\"a\"]", "=[\"c\", \"b\", \"a\"]", "12![\"c\",\"b\",\"a\",\"a\"]"));
    schema(
        "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":{\"type\":\"null\"},"
        "\"minItems\":1,\"maxItems\":3}",
        TEXTS("1![]", "=[1]", "=[1,\"a\"]", "=[1,\"a\",null]", "7![1,\"a\",2]", "11![1,\"a\",null,null]"));
    schema("{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"integer\"}},\"additionalProperties\":"
           "{\"type\":\"string\"},\"properties\":{\"k\":{\"type\":\"boolean\"}}}",
           TEXTS("={\"k\":true,\"x1\":3,\"y\":\"s\"}", "6!{\"x1\":\"s\"}", "5!{\"y\":1}", "5!{\"k\":1}",
                 "8!{\"\\u006b\":true}", "10!{\"x1\":3,\"k\":true}"));
    schema(
        "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"dependentRequired\":{\"a\":[\"b\"]},\"maxProperties\":2}",
        TEXTS("={}", "={\"b\":1}", "={\"a\":1,\"b\":2}", "6!{\"a\":1}", "12!{\"a\":1,\"b\":2,\"c\":3}"));
    schema("{\"type\":\"object\",\"minProperties\":2,\"propertyNames\":{\"pattern\":\"^[a-c]$\"},\"additionalProperties\":"
           "{\"type\":\"integer\"}}",
           TEXTS("6!{\"a\":1}", "={\"a\":1,\"b\":2}", "2!{\"d\":1}"));
    schema("{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":3}}},{\"properties\":{\"a\":{\"type\":\"integer\"}},"
           "\"required\":[\"a\"]}]}",
           TEXTS("={\"a\":3}", "~{\"a\":2", "6!{\"a\":2}", "=7"));
    schema(
        "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"items\":[{\"type\":\"null\"}],\"additionalItems\":false,"
        "\"type\":\"array\"}",
        TEXTS("=[null]", "5![null,1]"));
    schema("{\"type\":\"integer\",\"nullable\":true}", TEXTS("=null", "=1"));
}

static void schemas_with_options(void **state) {
    (void)state;
    static const char ab[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
        "\"required\":[\"a\"]}";
    schema(ab, TEXTS("2!{\"b\":1,\"a\":2}", "={\"a\":1,\"z\":2}"));
    schema_with(ab, &(mf_schema_options){.any_order = true},
                TEXTS("={\"b\":1,\"a\":2}", "6!{\"b\":1}", "9!{\"a\":1,\"a\":2}"));
    schema_with(ab, &(mf_schema_options){.closed = true}, TEXTS("8!{\"a\":1,\"z\":2}", "={\"a\":1,\"b\":2}"));
    mf_error err = {0};
    const mf_schema_options strict = {.strict_oneof = true};
    assert_null(mf_constraint_of_schema(MF_STR("{\"oneOf\":[{},{\"type\":\"null\"}]}"), &strict, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "oneOf"));
}

static void schemas_that_are_refused(void **state) {
    (void)state;
    refused(true, "{\"properties\":{\"a\":{\"not\":{}}}}", "'#/properties/a': not is not supported");
    refused(true, "{\"a~/b\":1}", "the keyword 'a~/b' is not supported");
    refused(true, "{\"properties\":{\"x/y\":{\"if\":true}}}", "'#/properties/x~1y'");
    refused(true, "{\"$ref\":\"other.json\"}", "none is fetched");
    refused(true, "{\"$ref\":\"#\"}", "over 200 deep");
    refused(true, "{\"format\":\"iri\"}", "the format 'iri'");
    refused(true, "{\"pattern\":\"(?=a)\"}", "a look-ahead at byte 1");
    refused(true, "{\"pattern\":\"(a)\\\\1\"}", "a back-reference");
    refused(true, "{\"pattern\":\"a{3,1}\"}", "backwards");
    refused(true, "{\"type\":\"array\",\"uniqueItems\":true}", "uniqueItems");
    refused(true, "false", "allows nothing");
    refused(true, "{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "allows nothing");
    refused(true, "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "allows nothing");
    refused(true, "{\"type\":\"string\",\"pattern\":\"^(ab)+$\",\"minLength\":3,\"maxLength\":3}", "allows nothing");
    refused(true, "{\"required\":[\"a\"],\"properties\":{\"a\":false},\"type\":\"object\"}", "allows nothing");
    refused(true, "{\"type\":\"thing\"}", "type must be");
    refused(true, "{\"minimum\":\"1\"}", "minimum must be a number");
    refused(true, "[]", "must be an object, true or false");
    refused(true, "{", "the schema: line 1");
}

// ---- Masks

// Tokens of random pieces of JSON and of the alphabet, bytes of characters, control tokens and one that ends an answer.
typedef struct tokens {
    mf_grammar_token list[700];
    char bytes[700][8];
    int32_t n;
} tokens;

static void add_token(tokens *t, const char *bytes, size_t n, bool text, bool ends) {
    memcpy(t->bytes[t->n], bytes, n);
    t->list[t->n] = (mf_grammar_token){{t->bytes[t->n], n}, text, ends};
    t->n++;
}

static mf_grammar_vocab *make_vocab(tokens *t) {
    static const char alphabet[] = "ab1{}[]\":, -+.eul\\n\x80\xc3\xa9\xe2\x82\xac\xf0\x9f";
    t->n = 0;
    add_token(t, "<end>", 5, false, true);
    add_token(t, "<tool>", 6, false, false);
    for (int b = 0; b < 256; b++) add_token(t, (const char[]){(char)b}, 1, true, false);
    for (uint64_t i = 0; i < 400; i++) {
        char bytes[8];
        size_t n = 2 + (size_t)(mf_random_uniform(5, i, 0) * 4);
        for (size_t k = 0; k < n; k++) bytes[k] = alphabet[(size_t)(mf_random_uniform(5, i, k + 1) * (sizeof alphabet - 1))];
        add_token(t, bytes, n, true, false);
    }
    mf_error err = {0};
    mf_grammar_vocab *v = mf_grammar_vocab_new(t->list, t->n, &err);
    if (!v) fail_msg("%s", err.text);
    return v;
}

// Walks at random, and in each place compares the mask with taking every token. Returns how many places were seen.
static int check_masks(mf_constraint *c, const tokens *t, uint64_t seed) {
    mf_error err = {0};
    mf_constraint_place at = mf_constraint_start(c), to;
    int n = 0;
    for (; n < 40; n++) {
        mf_token_mask *mask = mf_constraint_mask(c, at, &err);
        if (!mask) fail_msg("%s", err.text);
        int32_t allowed[700], n_allowed = 0;
        for (int32_t id = 0; id < t->n; id++) {
            bool in_mask = mask->words[id / 64] >> id % 64 & 1, taken = mf_constraint_advance(c, at, id, &to, &err);
            if (taken) mf_constraint_drop_place(c, to);
            if (in_mask != taken)
                fail_msg("place %d: token %d '%.*s': mask %d, taken %d", n, id, (int)t->list[id].name.len,
                         t->list[id].name.ptr, in_mask, taken);
            if (taken && !t->list[id].ends) allowed[n_allowed++] = id;
        }
        char forced[8];
        size_t n_forced = mf_constraint_forced(c, at, forced, sizeof forced);
        for (int32_t i = 0; i < n_allowed && n_forced; i++) {
            mf_str name = t->list[allowed[i]].name;
            size_t both = name.len < n_forced ? name.len : n_forced;
            assert_true(!t->list[allowed[i]].text || memcmp(name.ptr, forced, both) == 0);
        }
        assert_int_equal(mask->n_allowed, n_allowed + mf_constraint_final(c, at));
        mf_token_mask_drop(mask);
        if (n_allowed == 0) break;
        int32_t id = allowed[(size_t)(mf_random_uniform(seed, (uint64_t)n, 0) * n_allowed)];
        assert_true(mf_constraint_advance(c, at, id, &to, &err));
        mf_constraint_drop_place(c, at);
        at = to;
    }
    mf_constraint_drop_place(c, at);
    return n;
}

static void masks_are_what_taking_each_token_says(void **state) {
    (void)state;
    static const char *const schemas_of_masks[] = {
        "{}",
        "{\"type\":\"string\"}",
        "{\"type\":\"string\",\"maxLength\":6}",
        "{\"type\":\"string\",\"minLength\":3,\"maxLength\":9}",
        "{\"type\":\"string\",\"pattern\":\"^[ab]{2,5}1?$\"}",
        "{\"type\":\"string\",\"pattern\":\"^.{3}[x-z]$\"}",
        "{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":7}",
        "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":2},\"maxItems\":3}",
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":4}",
        "{\"type\":\"object\",\"properties\":{\"a\":{},\"ab\":{\"type\":\"number\"}},\"required\":[\"ab\"]}",
        "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"},\"maxProperties\":2}",
        "{\"enum\":[\"a\",\"ab\",\"\xc3\xa9\",1,11]}",
    };
    static const char *const grammars_of_masks[] = {
        "root ::= [a-e]* \"1\"",
        "root ::= (\"a\" | \"ab\" | \"b\")*",
        "root ::= \"{\" root? \"}\"",
        "root ::= \"a\" <tool> \"b\" | !<tool> !<[2]> \"1\"",
        "root ::= [^\"\\\\]{0,20} \"\\\"\"",
        "root ::= .{5} | \"\xe2\x82\xac\"+",
    };
    tokens *t = malloc(sizeof *t);
    assert_non_null(t);
    mf_grammar_vocab *v = make_vocab(t);
    int places = 0;
    for (size_t i = 0; i < sizeof schemas_of_masks / sizeof *schemas_of_masks; i++) {
        mf_error err = {0};
        mf_constraint *c = mf_constraint_of_schema(mf_str_of(schemas_of_masks[i]), NULL, v, NULL, &err);
        if (!c) fail_msg("%s", err.text);
        for (uint64_t seed = 0; seed < 12; seed++) places += check_masks(c, t, seed);
        mf_constraint_drop(c);
    }
    for (size_t i = 0; i < sizeof grammars_of_masks / sizeof *grammars_of_masks; i++) {
        mf_error err = {0};
        const mf_free_text thought = {"<think>", "</think>", i % 2};
        mf_constraint *c = mf_constraint_of_gbnf(mf_str_of(grammars_of_masks[i]), v, i % 3 ? NULL : &thought, &err);
        if (!c) fail_msg("%s: %s", grammars_of_masks[i], err.text);
        for (uint64_t seed = 0; seed < 12; seed++) places += check_masks(c, t, seed);
        mf_constraint_drop(c);
    }
    assert_true(places > 500);
    mf_grammar_vocab_free(v);
    free(t);
}

// What a place says after thousands of others came and went, and their memory was given up, is what it said before.
static void places_outlive_the_cache(void **state) {
    (void)state;
    tokens *t = malloc(sizeof *t);
    assert_non_null(t);
    mf_grammar_vocab *v = make_vocab(t);
    mf_error err = {0};
    mf_constraint *c = mf_constraint_of_gbnf(MF_STR("root ::= ([a-z]{0,1000000} \" \"){0,1000000}"), v, NULL, &err);
    if (!c) fail_msg("%s", err.text);
    mf_constraint_place start = mf_constraint_start(c), at = mf_constraint_copy_place(c, start), to;
    mf_token_mask *before = mf_constraint_mask(c, start, &err);
    assert_non_null(before);
    for (int i = 0; i < 400000; i++) {
        assert_true(mf_constraint_advance(c, at, 2 + (i % 50 == 49 ? ' ' : 'a' + i % 26), &to, &err));
        mf_constraint_drop_place(c, at);
        at = to;
    }
    mf_token_mask *after = mf_constraint_mask(c, start, &err);
    assert_non_null(after);
    assert_memory_equal(before->words, after->words, v->n_words * sizeof(uint64_t));
    assert_true(mf_constraint_final(c, start));
    assert_true(mf_constraint_advance(c, start, 2 + 'q', &to, &err));
    mf_constraint_drop_place(c, to);
    mf_constraint_drop_place(c, at);
    mf_constraint_drop_place(c, start);
    mf_token_mask_drop(before);
    mf_token_mask_drop(after);
    mf_constraint_drop(c);
    mf_grammar_vocab_free(v);
    free(t);
}

// ---- Hostile ones

static char *text_of; // the grammar or schema being made
static size_t length;

static void append(const char *format, ...) {
    va_list args;
    va_start(args, format);
    length += (size_t)vsnprintf(text_of + length, (4U << 20) - length, format, args);
    va_end(args);
}

static void append_times(const char *text, int n) {
    for (int i = 0; i < n; i++) append("%s", text);
}

// Makes what was appended, which must be refused with a sentence that has `part`; NULL: accepted. It ends soon, and on a small stack.
static void ends_soon(bool schema, const char *part) {
    mf_error err = {0};
    const mf_str text = {text_of, length};
    mf_constraint *c =
        schema ? mf_constraint_of_schema(text, NULL, NULL, NULL, &err) : mf_constraint_of_gbnf(text, NULL, NULL, &err);
    if (!c && !part) fail_msg("%s", err.text);
    if (c && part) fail_msg("accepted, not refused with '%s'", part);
    if (part && !strstr(err.text, part)) fail_msg("'%s' is not in: %s", part, err.text);
    mf_constraint_drop(c);
    length = 0;
}

static void hostile_schemas_end_soon(void **state) {
    (void)state;
    text_of = malloc(4U << 20);
    assert_non_null(text_of);
    append("{\"enum\":[1],\"anyOf\":[{\"$ref\":\"#\"}]}");
    ends_soon(true, "a reference to itself");
    append("{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}");
    ends_soon(true, "a reference to itself");
    append("{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a60\":{}");
    for (int i = 0; i < 60; i++)
        append(",\"a%d\":{\"allOf\":[{\"$ref\":\"#/$defs/a%d\"},{\"$ref\":\"#/$defs/a%d\"}]}", i, i + 1, i + 1);
    append("}}");
    ends_soon(true, "too many steps");
    append("{\"enum\":[");
    append_times("[", 60);
    append_times("]", 60);
    append("],\"$ref\":\"#/$defs/"
           "x\",\"$defs\":{\"x\":{\"anyOf\":[{\"type\":\"number\"},{\"items\":{\"allOf\":[{\"$ref\":\"#/$defs/x\"},"
           "{\"$ref\":\"#/$defs/x\"}]}}]}}}");
    ends_soon(true, "too many steps");
    append("{\"enum\":[[0");
    append_times(",1", 30000);
    append("]]}");
    ends_soon(true, NULL);
    append("{\"prefixItems\":[{}");
    append_times(",{}", 50000);
    append("]}");
    ends_soon(true, "prefixItems has over");
    append("{\"required\":[\"a\"");
    for (int i = 0; i < 50000; i++) append(",\"%d\"", i);
    append("]}");
    ends_soon(true, "names in one object");
    append("{\"enum\":[0");
    for (int i = 0; i < 30000; i++) append(",\"a%d\"", i);
    append("],\"allOf\":[{\"enum\":[0");
    for (int i = 0; i < 30000; i++) append(",\"b%d\"", i);
    append("]}]}");
    ends_soon(true, "too many steps");
    append("{\"pattern\":\"^(a?){100000}$\"}");
    ends_soon(true, "too ambiguous");
    append("{\"pattern\":\"a");
    append_times("*", 60000);
    append("\"}");
    ends_soon(true, "nothing to repeat");
    free(text_of);
}

static void hostile_grammars_end_soon(void **state) {
    (void)state;
    text_of = malloc(4U << 20);
    assert_non_null(text_of);
    append("root ::= \"a\"");
    append_times("*", 60000);
    ends_soon(false, "repetitions of repetitions");
    append("r0 ::= \"a\"\n");
    for (int i = 1; i < 60000; i++) append("r%d ::= r%d\n", i, i - 1);
    append("root ::= r59999\n");
    ends_soon(false, NULL);
    append("root ::= r0\nr60000 ::= \"a\"\n");
    for (int i = 0; i < 60000; i++) append("r%d ::= r%d\n", i, i + 1);
    ends_soon(false, NULL);
    free(text_of);
    mf_error err = {0};
    mf_constraint *c = mf_constraint_of_gbnf(
        MF_STR("root ::= \"a\" s{0,1000} s{0,1000}\ns ::= (\"a\"{0,99} \"b\"{0,99} \"a\"{0,99}){0,99}"), NULL, NULL, &err);
    if (!c) fail_msg("%s", err.text);
    char many[500];
    memset(many, 'a', sizeof many);
    size_t at = 0;
    assert_int_equal(mf_constraint_check(c, (mf_str){many, sizeof many}, &at, &err), MF_CHECK_FAILED);
    assert_non_null(strstr(err.text, "too ambiguous"));
    mf_constraint_drop(c);
}

// An ending token is never "any other token": else it would be in no mask, and yet lead on.
static void ending_tokens_are_no_other_token(void **state) {
    (void)state;
    tokens *t = malloc(sizeof *t);
    assert_non_null(t);
    mf_grammar_vocab *v = make_vocab(t);
    mf_error err = {0};
    mf_constraint *c = mf_constraint_of_gbnf(MF_STR("root ::= !<tool> \"1\""), v, NULL, &err);
    if (!c) fail_msg("%s", err.text);
    mf_constraint_place start = mf_constraint_start(c), to;
    assert_false(mf_constraint_advance(c, start, 0, &to, &err));
    check_masks(c, t, 0);
    mf_constraint_drop_place(c, start);
    mf_constraint_drop(c);
    mf_grammar_vocab_free(v);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammars),
        cmocka_unit_test(grammars_that_are_refused),
        cmocka_unit_test(schemas),
        cmocka_unit_test(schemas_with_options),
        cmocka_unit_test(schemas_that_are_refused),
        cmocka_unit_test(masks_are_what_taking_each_token_says),
        cmocka_unit_test(places_outlive_the_cache),
        cmocka_unit_test(hostile_schemas_end_soon),
        cmocka_unit_test(hostile_grammars_end_soon),
        cmocka_unit_test(ending_tokens_are_no_other_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
