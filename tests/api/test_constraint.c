// Constrained answers through the public interface: they are what the constraint allows and the same bytes whatever the threads, the batch, the
// company, the cache and the interruptions; what is refused, and who may be freed when.
#include "api/fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "base/json.h"
#include "support/folder.h"

enum {
    PROMPT = 70,
    TOKENS = 60,
    MOST = 1024,
    COMPANY = 4
};

#define PEOPLE                                                                                         \
    "{\"type\":\"array\",\"minItems\":3,\"maxItems\":3,\"items\":{\"type\":\"object\",\"properties\":" \
    "{\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":8},"                                 \
    "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150}},"                                   \
    "\"required\":[\"name\",\"age\"],\"additionalProperties\":false}}"

static minfer_model *model;

static int open_model(void **state) {
    (void)state;
    model = fixture_model(TINY("qwen2-mix"));
    return 0;
}

static int close_model(void **state) {
    (void)state;
    minfer_model_close(model);
    return 0;
}

static minfer_constraint *schema(minfer_model *m, const char *text, unsigned flags) {
    minfer_constraint *c = NULL;
    good((c = minfer_constraint_from_schema(m, text, strlen(text), flags, &error)) != NULL);
    return c;
}

static minfer_constraint *gbnf(minfer_model *m, const char *text) {
    minfer_constraint *c = NULL;
    good((c = minfer_constraint_from_gbnf(m, text, strlen(text), &error)) != NULL);
    return c;
}

static minfer_check check(const minfer_constraint *c, const char *text, size_t len, size_t *at) {
    minfer_check result = MINFER_CHECK_FAILED;
    good((result = minfer_constraint_check(c, text, len, at, &error)) != MINFER_CHECK_FAILED);
    return result;
}

// What a sequence has said.
typedef struct said {
    int32_t ids[MOST];
    size_t n, len;
    char text[8 * MOST];
    minfer_finish finish;
    char why[512];
} said;

static void same(const said *got, const said *want) {
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->ids, want->ids, want->n * sizeof *want->ids);
    assert_int_equal(got->len, want->len);
    assert_memory_equal(got->text, want->text, want->len);
    assert_int_equal(got->finish, want->finish);
}

typedef struct request {
    const minfer_constraint *constraint;
    uint64_t seed;
    float temp;
    int32_t max_tokens;
    bool ignore_end;
} request;

static minfer_sequence *begin(minfer_engine *e, const request *r, said *out) {
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.temp = r->temp, sampling.seed = r->seed;
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.sampling = &sampling, o.max_tokens = r->max_tokens, o.ignore_end = r->ignore_end, o.arg = out;
    o.constraint = r->constraint;
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(e, &o, &error)) != NULL);
    return s;
}

static void append(minfer_sequence *s, int32_t first) {
    int32_t prompt[PROMPT];
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = (i * 11 + first) % 250;
    good(minfer_append(s, prompt, PROMPT, &error));
}

// Steps until nothing is left to do, or `watched` has `most` tokens.
static void run(minfer_engine *e, const said *watched, size_t most) {
    while (!minfer_idle(e) && (!watched || watched->n < most)) {
        minfer_event events[COMPANY];
        size_t n;
        good(minfer_step(e, events, COMPANY, &n, &error));
        for (size_t i = 0; i < n; i++) {
            said *out = minfer_sequence_arg(events[i].sequence);
            assert_true(out->n < MOST && out->len + events[i].text_len < sizeof out->text);
            if (events[i].token >= 0) out->ids[out->n++] = events[i].token;
            memcpy(out->text + out->len, events[i].text, events[i].text_len);
            out->len += events[i].text_len;
            out->finish = events[i].finish;
            if (events[i].error) snprintf(out->why, sizeof out->why, "%s", events[i].error->text);
            bool explained = out->finish == MINFER_FINISH_ERROR || out->finish == MINFER_FINISH_CONSTRAINT;
            assert_int_equal(events[i].error != NULL, explained);
        }
    }
}

static void alone(minfer_model *m, const request *r, said *out) {
    minfer_engine *e = fixture_engine(m, 1, 1024);
    *out = (said){.n = 0};
    append(begin(e, r, out), 5);
    run(e, NULL, 0);
    minfer_engine_free(e);
}

// ---- What is said

static void check_people(const said *s) {
    mf_arena arena = {0};
    mf_error err = {0};
    const mf_json *list = mf_json_parse(&arena, (mf_str){s->text, s->len}, &err);
    if (!list) fail_msg("%.*s: %s", (int)s->len, s->text, err.text);
    assert_int_equal(list->kind, MF_JSON_ARRAY);
    assert_int_equal(list->count, 3);
    for (const mf_json *p = list->child; p; p = p->next) {
        const mf_json *name = mf_json_get(p, "name"), *age = mf_json_get(p, "age");
        int64_t years;
        assert_true(p->count == 2 && name && name->kind == MF_JSON_STRING && name->text.len >= 2);
        assert_true(age && mf_json_i64(age, &years) && years >= 0 && years <= 150);
    }
    mf_arena_free(&arena);
}

static void answers_are_what_the_schema_allows(void **state) {
    (void)state;
    minfer_constraint *people = schema(model, PEOPLE, 0);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        said s;
        alone(model, &(request){people, seed, seed % 2 ? 1.0F : 3.0F, -1, seed > 6}, &s);
        assert_int_equal(s.finish, MINFER_FINISH_STOP);
        check_people(&s);
        assert_int_equal(check(people, s.text, s.len, NULL), MINFER_CHECK_ACCEPTED);
    }
    minfer_constraint_free(people);
}

// An answer that its constraint has ended is at its end, also where ending tokens are ignored as long as there is another.
static void an_answer_ends_where_its_grammar_does(void **state) {
    (void)state;
    minfer_constraint *c = gbnf(model, "root ::= \"a\"{3,7}");
    said out = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_sequence *s = begin(e, &(request){c, 1, 1.0F, -1, true}, &out);
    minfer_constraint_free(c); // the sequence holds it
    append(s, 5);
    run(e, NULL, 0);
    assert_int_equal(out.finish, MINFER_FINISH_STOP);
    assert_int_equal(out.len, 7);
    assert_memory_equal(out.text, "aaaaaaa", 7);
    refused(minfer_resume(s, &error), MINFER_ERROR_ARGUMENT, "the answer has ended with token");
    append(s, 6); // the next answer begins anew
    out.len = 0;
    run(e, NULL, 0);
    assert_int_equal(out.len, 7);
    minfer_engine_free(e);
}

static void texts_are_checked(void **state) {
    (void)state;
    minfer_constraint *c = schema(model, "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", 0);
    size_t at = 99;
    assert_int_equal(check(c, "[1, 2]", 6, &at), MINFER_CHECK_ACCEPTED);
    assert_int_equal(at, 6);
    assert_int_equal(check(c, "[1,", 3, &at), MINFER_CHECK_INCOMPLETE);
    assert_int_equal(at, 3);
    assert_int_equal(check(c, "[1,\"a\"]", 7, &at), MINFER_CHECK_REJECTED);
    assert_int_equal(at, 3);
    assert_int_equal(check(c, NULL, 0, NULL), MINFER_CHECK_INCOMPLETE);
    refused(minfer_constraint_check(c, NULL, 1, &at, &error) != MINFER_CHECK_FAILED, MINFER_ERROR_ARGUMENT,
            "the text is NULL");
    refused(minfer_constraint_check(NULL, "1", 1, &at, &error) != MINFER_CHECK_FAILED, MINFER_ERROR_ARGUMENT,
            "the constraint is NULL");
    minfer_constraint_free(c);
}

static void flags_count(void **state) {
    (void)state;
    static const char pair[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}";
    minfer_constraint *plain = schema(model, pair, 0), *any = schema(model, pair, MINFER_SCHEMA_ANY_ORDER),
                      *closed = schema(model, pair, MINFER_SCHEMA_CLOSED);
    static const char turned[] = "{\"b\":2,\"a\":1}", more[] = "{\"a\":1,\"c\":3}";
    assert_int_equal(check(plain, turned, strlen(turned), NULL), MINFER_CHECK_REJECTED);
    assert_int_equal(check(any, turned, strlen(turned), NULL), MINFER_CHECK_ACCEPTED);
    assert_int_equal(check(plain, more, strlen(more), NULL), MINFER_CHECK_ACCEPTED);
    assert_int_equal(check(closed, more, strlen(more), NULL), MINFER_CHECK_REJECTED);
    minfer_constraint_free(plain);
    minfer_constraint_free(any);
    minfer_constraint_free(closed);
    static const char either[] = "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}";
    minfer_constraint_free(schema(model, either, 0));
    refused(minfer_constraint_from_schema(model, either, strlen(either), MINFER_SCHEMA_STRICT_ONEOF, &error),
            MINFER_ERROR_UNSUPPORTED, "oneOf");
    refused(minfer_constraint_from_schema(model, "{}", 2, 8, &error), MINFER_ERROR_ARGUMENT, "unknown flags 0x8");
    refused(minfer_constraint_from_schema(model, "{}", 2, ~0U, &error), MINFER_ERROR_ARGUMENT, "unknown flags 0xFFFFFFF8");
}

static void nonsense_is_refused(void **state) {
    (void)state;
    static const char negated[] = "{\"properties\":{\"a\":{\"not\":{}}}}";
    refused(minfer_constraint_from_schema(model, "{", 1, 0, &error), MINFER_ERROR_FORMAT, "the schema: line 1");
    refused(minfer_constraint_from_schema(model, NULL, 0, 0, &error), MINFER_ERROR_FORMAT, "the schema: line 1");
    refused(minfer_constraint_from_schema(model, NULL, 1, 0, &error), MINFER_ERROR_ARGUMENT, "the schema is NULL");
    refused(minfer_constraint_from_schema(model, negated, strlen(negated), 0, &error), MINFER_ERROR_UNSUPPORTED,
            "the schema at '#/properties/a': not is not supported");
    refused(minfer_constraint_from_gbnf(model, "root ::= [", 10, &error), MINFER_ERROR_FORMAT,
            "the grammar: line 1, column 10: a class that does not end");
    refused(minfer_constraint_from_gbnf(model, NULL, 1, &error), MINFER_ERROR_ARGUMENT, "the grammar is NULL");
    refused(minfer_constraint_from_gbnf(model, NULL, 0, &error), MINFER_ERROR_FORMAT, "no rule 'root'");
    refused(minfer_constraint_from_schema(NULL, "{}", 2, 0, &error), MINFER_ERROR_ARGUMENT, "the model is NULL");
    refused(minfer_constraint_from_gbnf(NULL, "", 0, &error), MINFER_ERROR_ARGUMENT, "the model is NULL");
    assert_null(minfer_constraint_from_gbnf(model, "", 0, NULL));
    minfer_constraint_free(NULL);
}

static void a_constraint_is_for_answers_of_its_model(void **state) {
    (void)state;
    minfer_model_options mo;
    minfer_model_options_init(&mo, sizeof mo);
    mo.ids_only = true;
    minfer_model *other = NULL;
    good((other = minfer_model_open(TINY("qwen2-mix"), &mo, &error)) != NULL);
    refused(minfer_constraint_from_schema(other, "{}", 2, 0, &error), MINFER_ERROR_UNSUPPORTED, "without a tokenizer");
    refused(minfer_constraint_from_gbnf(other, "root ::= \"a\"", 12, &error), MINFER_ERROR_UNSUPPORTED,
            "without a tokenizer");
    minfer_constraint *c = gbnf(model, "root ::= \"a\"");
    minfer_engine *e = fixture_engine(other, 1, 128);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.constraint = c;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "another model");
    minfer_engine_free(e);
    minfer_model_close(other);
    e = fixture_engine(model, 1, 128);
    o.evaluate_only = true;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "evaluate_only");
    minfer_engine_free(e);
    minfer_constraint_free(c);
}

static void a_constraint_keeps_its_model(void **state) {
    (void)state;
    minfer_model *m = fixture_model(TINY("llama-mix"));
    minfer_constraint *c = gbnf(m, "root ::= \"yes\" | \"no\"");
    minfer_engine *e = fixture_engine(m, 1, 128);
    minfer_model_close(m);
    said out = {.n = 0};
    minfer_sequence *s = begin(e, &(request){c, 1, 1.0F, -1, false}, &out);
    append(s, 5);
    run(e, NULL, 0);
    assert_true((out.len == 3 && memcmp(out.text, "yes", 3) == 0) || (out.len == 2 && memcmp(out.text, "no", 2) == 0));
    minfer_engine_free(e);
    assert_int_equal(check(c, "yes", 3, NULL), MINFER_CHECK_ACCEPTED);
    minfer_constraint_free(c);
}

// ---- A vocabulary with a gap

// A copy of a model whose token for the byte 'Z' is a control token: it says nothing.
static void write_model_without_z(const char *path) {
    static const char key[] = "tokenizer.ggml.token_type";
    minfer_model *m = fixture_model(TINY("llama-f32"));
    int32_t z = -1, control = 3;
    size_t n, size, at = 0;
    good(minfer_encode(m, "Z", 1, 0, &z, 1, &n, &error));
    minfer_model_close(m);
    FILE *f = fopen(TINY("llama-f32"), "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, f), size);
    fclose(f);
    while (memcmp(bytes + at, key, sizeof key - 1) != 0) assert_true(++at + sizeof key < size);
    at += sizeof key - 1 + 4 + 4 + 8 + (size_t)z * 4; // behind the kinds of the value and its items, and their number
    assert_int_equal(bytes[at], 1);
    memcpy(bytes + at, &control, sizeof control);
    assert_non_null(f = fopen(path, "wb"));
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

static void an_answer_ends_where_no_token_is_allowed(void **state) {
    (void)state;
    char folder[64], path[80];
    assert_true(folder_make(folder, "constraint"));
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    write_model_without_z(path);
    minfer_model *m = fixture_model(path);
    minfer_constraint *c = gbnf(m, "root ::= \"ab\" (\"Z\" | \"aZ\")");
    minfer_engine *e = fixture_engine(m, 2, 256);
    said out = {.n = 0}, other = {.n = 0};
    minfer_sequence *s = begin(e, &(request){c, 1, 1.0F, -1, false}, &out);
    append(s, 5);
    append(begin(e, &(request){NULL, 1, 1.0F, 20, true}, &other), 6);
    run(e, NULL, 0);
    assert_int_equal(out.finish, MINFER_FINISH_CONSTRAINT);
    assert_memory_equal(out.text, "ab", 2);
    assert_non_null(strstr(out.why, "ab"));
    assert_non_null(strstr(out.why, "Z"));
    assert_int_equal(other.finish, MINFER_FINISH_LENGTH); // the others go on
    good(minfer_truncate(s, PROMPT + 1, &error));         // it can be used again
    append(s, 7);
    out.finish = MINFER_FINISH_NONE;
    run(e, NULL, 0);
    assert_int_equal(out.finish, MINFER_FINISH_CONSTRAINT);
    minfer_engine_free(e);
    minfer_constraint_free(c);
    minfer_model_close(m);
    unlink(path);
    rmdir(folder);
}

// ---- The same bytes

typedef struct setup {
    int32_t n_threads, n_batch, n_ctx;
    bool company, warm;
} setup;

typedef struct room {
    minfer_model *model;
    minfer_engine *engine;
    minfer_constraint *people, *other;
} room;

static void open_room(room *r, const setup *s) {
    minfer_model_options mo;
    minfer_model_options_init(&mo, sizeof mo);
    mo.n_threads = s->n_threads;
    minfer_engine_options eo;
    minfer_engine_options_init(&eo, sizeof eo);
    eo.n_batch = s->n_batch, eo.n_ctx = s->n_ctx, eo.max_sequences = COMPANY;
    good((r->model = minfer_model_open(TINY("qwen2-mix"), &mo, &error)) != NULL);
    good((r->engine = minfer_engine_new(r->model, &eo, &error)) != NULL);
    r->people = schema(r->model, PEOPLE, 0);
    r->other = gbnf(r->model, "root ::= ([a-z]+ [ \\n])+");
}

static void close_room(room *r) {
    minfer_constraint_free(r->people);
    minfer_constraint_free(r->other);
    minfer_engine_free(r->engine);
    minfer_model_close(r->model);
}

// An answer under the schema, beside one of another constraint, one of the same and a free one. Whether sequences gave cells back.
static bool answer_in(const setup *s, said *constrained, said *freely) {
    static said a, b;
    room r;
    bool gave = false;
    minfer_sequence *all[COMPANY] = {NULL};
    open_room(&r, s);
    const request mine = {r.people, 3, 1.4F, TOKENS, false}, others[] = {{r.other, 4, 1.0F, TOKENS, false},
                                                                         {r.people, 9, 1.0F, TOKENS, false},
                                                                         {NULL, 3, 1.4F, TOKENS, true}};
    said *out[] = {constrained, &a, &b, freely};
    for (int i = 0; i < COMPANY; i++) *out[i] = (said){.n = 0};
    if (s->warm) {
        append(all[0] = begin(r.engine, &others[1], &b), 5);
        run(r.engine, NULL, 0);
        minfer_sequence_free(all[0]);
    }
    append(all[0] = begin(r.engine, &mine, constrained), 5);
    for (int i = 1; i < COMPANY && s->company; i++) append(all[i] = begin(r.engine, &others[i - 1], out[i]), i < 3 ? i : 5);
    int32_t evaluated[COMPANY] = {0};
    while (!minfer_idle(r.engine)) {
        run(r.engine, constrained, constrained->n + 1);
        for (int i = 0; i < COMPANY && all[i]; i++) {
            gave = gave || minfer_sequence_n_evaluated(all[i]) < evaluated[i];
            evaluated[i] = minfer_sequence_n_evaluated(all[i]);
        }
    }
    if (s->warm) assert_true(minfer_sequence_n_cached(all[0]) > 0);
    close_room(&r);
    return gave;
}

static void the_setup_changes_no_byte(void **state) {
    (void)state;
    static const setup setups[] = {{2, 512, 1024, false, false}, {3, 64, 1024, true, false}, {1, 7, 1024, true, false},
                                   {2, 1, 1024, false, false},   {3, 7, 1024, false, true},  {1, 64, 1024, true, true},
                                   {2, 1, 1024, true, false},    {2, 64, 256, true, false}};
    static said want, got, freely, want_freely;
    answer_in(&(setup){1, 512, 1024, false, false}, &want, &freely);
    assert_true(want.n > 40);
    alone(model, &(request){NULL, 3, 1.4F, TOKENS, true}, &want_freely);
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        bool gave = answer_in(&setups[i], &got, &freely);
        same(&got, &want);
        if (setups[i].company) same(&freely, &want_freely); // whom constraints of others don't concern
        assert_int_equal(gave, setups[i].n_ctx == 256);
    }
}

static void a_stopped_answer_goes_on(void **state) {
    (void)state;
    static said want, got;
    minfer_constraint *people = schema(model, PEOPLE, 0);
    const request r = {people, 3, 1.4F, TOKENS, false};
    alone(model, &r, &want);
    minfer_engine *e = fixture_engine(model, 1, 256);
    got = (said){.n = 0};
    minfer_sequence *s = begin(e, &r, &got);
    append(s, 5);
    for (size_t n = 1; !minfer_sequence_idle(s); n += 3) {
        run(e, &got, n);
        if (minfer_sequence_idle(s)) break;
        minfer_stop(s);
        good(minfer_resume(s, &error));
    }
    same(&got, &want);
    minfer_engine_free(e);
    minfer_constraint_free(people);
}

// Without chance a cut answer becomes what it was; with it, what goes on from there in the constraint.
static void a_cut_answer_goes_on(void **state) {
    (void)state;
    static said want, got;
    minfer_constraint *people = schema(model, PEOPLE, 0);
    for (int chance = 0; chance < 2; chance++)
        for (int32_t cut = 1; cut < TOKENS; cut += 9) {
            minfer_engine *e = fixture_engine(model, 1, 256);
            want = got = (said){.n = 0};
            minfer_sequence *s = begin(e, &(request){people, 3, chance ? 1.4F : 0, TOKENS, false}, &got);
            append(s, 5);
            run(e, NULL, 0);
            want = got;
            good(minfer_truncate(s, PROMPT + cut, &error));
            good(minfer_resume(s, &error));
            got.n = (size_t)cut;
            run(e, NULL, 0);
            char text[MOST];
            size_t len;
            good(minfer_decode(model, got.ids, got.n, 0, text, sizeof text, &len, &error));
            assert_true(check(people, text, len, NULL) <= MINFER_CHECK_INCOMPLETE);
            if (!chance) assert_int_equal(got.n, want.n);
            if (!chance) assert_memory_equal(got.ids, want.ids, want.n * sizeof *want.ids);
            minfer_engine_free(e);
        }
    minfer_constraint_free(people);
}

static void a_loaded_answer_goes_on(void **state) {
    (void)state;
    char folder[64], path[80];
    assert_true(folder_make(folder, "constraint"));
    snprintf(path, sizeof path, "%s/session", folder);
    static said want, got;
    minfer_constraint *people = schema(model, PEOPLE, 0);
    const request r = {people, 3, 1.4F, TOKENS, false};
    alone(model, &r, &want);
    for (size_t cut = 1; cut < want.n; cut += 7) { // also within names and characters
        got = (said){.n = 0};
        minfer_engine *e = fixture_engine(model, 1, 256);
        minfer_sequence *s = begin(e, &r, &got);
        append(s, 5);
        run(e, &got, cut);
        good(minfer_session_new(s, path, &error));
        good(minfer_session_commit(s, NULL, 0, &error));
        minfer_engine_free(e);
        e = fixture_engine(model, 1, 256);
        good(minfer_session_open(s = begin(e, &r, &got), path, &error));
        good(minfer_resume(s, &error));
        run(e, NULL, 0);
        same(&got, &want);
        minfer_engine_free(e);
    }
    minfer_constraint_free(people);
    unlink(path);
    rmdir(folder);
}

// ---- One constraint in several threads

typedef struct worker {
    pthread_t thread;
    minfer_model *model;
    minfer_constraint *people; // of all
    said out;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    minfer_constraint_free(schema(w->model, "{\"type\":\"integer\"}", 0)); // they meet at the vocabulary
    alone(w->model, &(request){w->people, 3, 1.4F, TOKENS, false}, &w->out);
    return NULL;
}

static void threads_share_a_constraint(void **state) {
    (void)state;
    static worker workers[3];
    static said want;
    minfer_constraint *people = schema(model, PEOPLE, 0);
    alone(model, &(request){people, 3, 1.4F, TOKENS, false}, &want);
    for (int i = 0; i < 3; i++) {
        workers[i].model = model, workers[i].people = people;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        same(&workers[i].out, &want);
    }
    minfer_constraint_free(people);
}

// ---- Conversations

static void each_answer_of_a_conversation_is_constrained(void **state) {
    (void)state;
    static const char hello[] = "{\"role\":\"user\",\"content\":\"Hello.\"}";
    said out = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_constraint *c = gbnf(model, "root ::= \"one\" | \"two\"");
    minfer_conversation_options o;
    minfer_conversation_options_init(&o, sizeof o);
    o.constraint = c, o.arg = &out;
    minfer_conversation *talk = NULL;
    good((talk = minfer_conversation_new(e, &o, &error)) != NULL);
    minfer_constraint_free(c);
    for (int turn = 0; turn < 3; turn++) {
        out.len = 0;
        good(minfer_conversation_add(talk, hello, strlen(hello), &error));
        good(minfer_conversation_answer(talk, &error));
        run(e, NULL, 0);
        assert_int_equal(out.finish, MINFER_FINISH_STOP);
        assert_int_equal(out.len, 3);
        assert_true(memcmp(out.text, "one", 3) == 0 || memcmp(out.text, "two", 3) == 0);
    }
    minfer_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_what_the_schema_allows),
        cmocka_unit_test(an_answer_ends_where_its_grammar_does),
        cmocka_unit_test(texts_are_checked),
        cmocka_unit_test(flags_count),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_constraint_is_for_answers_of_its_model),
        cmocka_unit_test(a_constraint_keeps_its_model),
        cmocka_unit_test(an_answer_ends_where_no_token_is_allowed),
        cmocka_unit_test(the_setup_changes_no_byte),
        cmocka_unit_test(a_stopped_answer_goes_on),
        cmocka_unit_test(a_cut_answer_goes_on),
        cmocka_unit_test(a_loaded_answer_goes_on),
        cmocka_unit_test(threads_share_a_constraint),
        cmocka_unit_test(each_answer_of_a_conversation_is_constrained),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
