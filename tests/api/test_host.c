// What a program around the library may do: floating-point states, callbacks that step and free, forks, threads that look on and
// interrupt. Nothing of it changes an answer.
#include "api/fixture.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum {
    PROMPT = 150,
    TOKENS = 24,
    MOST = 512
};

typedef struct record {
    int32_t ids[MOST];
    size_t n;
} record;

static minfer_model *model;
static int32_t prompt[PROMPT];

static int open_model(void **state) {
    (void)state;
    model = fixture_model(TINY("llama3-f16"));
    for (int i = 0; i < PROMPT; i++) prompt[i] = (i * 7 + 3) % 250;
    return 0;
}

static int close_model(void **state) {
    (void)state;
    minfer_model_close(model);
    return 0;
}

static minfer_sequence *new_sequence(minfer_engine *e, minfer_logits_fn *on_logits, void *arg) {
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.temp = 1.3F, sampling.mirostat = 2, sampling.dry_multiplier = 0.4F, sampling.seed = 7;
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.sampling = &sampling, o.max_tokens = TOKENS, o.ignore_end = true, o.on_logits = on_logits, o.arg = arg;
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(e, &o, &error)) != NULL);
    return s;
}

static void take(record *r, const minfer_event *events, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (events[i].finish == MINFER_FINISH_ERROR) fail_msg("%s", events[i].error->text);
        assert_true(r->n < MOST);
        r->ids[r->n++] = events[i].token;
    }
}

static void run(minfer_engine *e, record *r) {
    while (!minfer_idle(e)) {
        minfer_event events[4];
        size_t n;
        good(minfer_step(e, events, 4, &n, &error));
        take(r, events, n);
    }
}

static void same(const record *got, const record *want) {
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->ids, want->ids, want->n * sizeof *want->ids);
}

// What a sequence of the prompt says when it is alone.
static record alone(void) {
    record r = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 512);
    good(minfer_append(new_sequence(e, NULL, NULL), prompt, PROMPT, &error));
    run(e, &r);
    minfer_engine_free(e);
    assert_int_equal(r.n, TOKENS);
    return r;
}

// ---- The floating-point state

typedef struct host_state {
    int rounding;
    unsigned mxcsr; // bits to change from the default, x86 only
} host_state;

static void set_state(host_state s) {
    fesetround(s.rounding);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() ^ s.mxcsr);
#endif
}

static bool is_set(host_state s) {
    bool set = fegetround() == s.rounding;
#if defined(__x86_64__)
    set = set && ((_mm_getcsr() & 0xFFC0) ^ s.mxcsr) == (0x1F80U | (unsigned)s.rounding << 3);
#endif
    return set;
}

static host_state host;
static bool host_seen; // by the callbacks

static void see(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)arg, (void)s, (void)position, (void)logits, (void)n_vocab;
    host_seen = host_seen && is_set(host);
}

static bool see_progress(void *arg, double fraction) {
    (void)arg, (void)fraction;
    host_seen = host_seen && is_set(host);
    return true;
}

// Every call that computes something, in a state of the caller's that must be there after each.
static record in_state(host_state h) {
    record r = {.n = 0};
    char path[64], text[64];
    snprintf(path, sizeof path, "/tmp/minfer-host-%d", (int)getpid());
    minfer_message talk = {"user", "Is there bread?"};
    size_t n, text_len;
    fenv_t before;
    minfer_model_options o;
    minfer_model_options_init(&o, sizeof o);
    o.n_threads = 2, o.progress = see_progress;
    fegetenv(&before);
    host = h, host_seen = true;
    set_state(h);
#define still(call)                \
    do {                           \
        good(call);                \
        if (!is_set(h)) {          \
            fesetenv(&before);     \
            fail_msg("%s", #call); \
        }                          \
    } while (0)
    minfer_model *m = NULL;
    minfer_engine *e = NULL;
    still((m = minfer_model_open(TINY("llama3-f16"), &o, &error)) != NULL);
    still((e = minfer_engine_new(m, NULL, &error)) != NULL);
    minfer_sequence *s = new_sequence(e, see, NULL);
    assert_true(is_set(h));
    still(minfer_append(s, prompt, PROMPT, &error));
    for (int i = 0; i < 10; i++) {
        minfer_event event;
        still(minfer_step(e, &event, 1, &n, &error));
        take(&r, &event, n);
    }
    still(minfer_shift(s, 10, 64, &error));
    still(minfer_session_new(s, path, &error));
    still(minfer_session_commit(s, NULL, 0, &error));
    run(e, &r);
    still(minfer_truncate(s, 60, &error));
    still(minfer_append_text(s, "The kettle sang.", 16, 0, &error));
    run(e, &r);
    still(minfer_encode_chat(m, &talk, 1, true, r.ids + r.n, MOST - r.n, &n, &error));
    still(minfer_decode(m, r.ids + r.n, n, 0, text, sizeof text, &text_len, &error));
    r.n += n;
    minfer_engine_free(e);
    minfer_model_close(m);
    assert_true(is_set(h));
    fesetenv(&before);
    unlink(path);
    assert_true(host_seen);
    return r;
}

static void test_floating_point_state(void **state) {
    (void)state;
    static const host_state states[] = {
        {FE_UPWARD, 0},      {FE_DOWNWARD, 0},
        {FE_TOWARDZERO, 0},  {FE_TONEAREST, 0x8040}, // flush to zero, denormals are zero
        {FE_UPWARD, 0x8040}, {FE_TONEAREST, 0x1F00}, // exceptions trap
    };
    record want = in_state((host_state){FE_TONEAREST, 0});
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        record got = in_state(states[i]);
        same(&got, &want);
    }
}

// ---- Callbacks

static minfer_engine *other_engine;
static record other_said;

static void step_the_other(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)arg, (void)s, (void)position;
    float first = logits[0], last = logits[n_vocab - 1];
    minfer_event event;
    size_t n;
    good(minfer_step(other_engine, &event, 1, &n, &error));
    take(&other_said, &event, n);
    assert_true(first == logits[0] && last == logits[n_vocab - 1]);
}

static void test_a_callback_steps_another_engine(void **state) {
    (void)state;
    record want = alone(), said = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 512);
    other_engine = fixture_engine(model, 1, 512);
    other_said.n = 0;
    good(minfer_append(new_sequence(other_engine, NULL, NULL), prompt, PROMPT, &error));
    good(minfer_append(new_sequence(e, step_the_other, NULL), prompt, PROMPT, &error));
    run(e, &said);
    same(&said, &want);
    same(&other_said, &want);
    minfer_engine_free(e);
    minfer_engine_free(other_engine);
}

typedef enum deed {
    FREE_SELF,
    FREE_OTHER,
    STOP_SELF,
    CLOSE_SESSION,
    FREE_ENGINE
} deed;

static struct {
    deed deed;
    int calls, at; // the call in which it is done
    minfer_sequence *other;
} doing;

static void do_it(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)arg, (void)position, (void)logits, (void)n_vocab;
    if (++doing.calls != doing.at) return;
    if (doing.deed == FREE_SELF) minfer_sequence_free(s);
    if (doing.deed == FREE_OTHER) minfer_sequence_free(doing.other);
    if (doing.deed == STOP_SELF) minfer_stop(s);
    if (doing.deed == CLOSE_SESSION) minfer_session_close(s);
    if (doing.deed == FREE_ENGINE) minfer_engine_free(minfer_sequence_engine(s));
}

// Two sequences, of which the first does something to itself, the other or all in its third callback. Takes what each of them says.
static bool two(deed what, record *acting, record *other) {
    minfer_engine *e = fixture_engine(model, 2, 1024);
    minfer_sequence *a = new_sequence(e, do_it, NULL), *b = new_sequence(e, NULL, NULL);
    doing.deed = what, doing.calls = 0, doing.at = 3, doing.other = b;
    acting->n = other->n = 0;
    good(minfer_append(a, prompt, PROMPT, &error));
    good(minfer_append(b, prompt, PROMPT, &error));
    while (!minfer_idle(e)) {
        minfer_event events[2];
        size_t n;
        minfer_error error;
        if (!minfer_step(e, events, 2, &n, &error)) {
            assert_int_equal(error.code, MINFER_ERROR_CANCELLED);
            assert_int_equal(n, 0);
            return false;
        }
        for (size_t i = 0; i < n; i++) take(events[i].sequence == a ? acting : other, &events[i], 1);
    }
    minfer_engine_free(e);
    return true;
}

static void test_callbacks_free_and_stop(void **state) {
    (void)state;
    record want = alone(), a, b;
    assert_true(two(FREE_SELF, &a, &b));
    assert_int_equal(a.n, 2);
    same(&b, &want);
    assert_true(two(FREE_OTHER, &a, &b));
    same(&a, &want);
    assert_true(b.n < TOKENS);
    assert_true(two(STOP_SELF, &a, &b));
    assert_int_equal(a.n, 2);
    same(&b, &want);
    assert_true(two(CLOSE_SESSION, &a, &b));
    same(&a, &want);
    assert_false(two(FREE_ENGINE, &a, &b));
}

// ---- Forks

// In the child: a number for the first thing that is wrong, 0 for none.
static int child(minfer_engine *e, minfer_sequence *s) {
    minfer_error error = {MINFER_OK, ""};
    minfer_event event;
    size_t n;
    int32_t id = 1;
    if (minfer_step(e, &event, 1, &n, &error) || error.code != MINFER_ERROR_UNSUPPORTED || !strstr(error.text, "forked"))
        return 1;
    if (minfer_append(s, &id, 1, &error) || error.code != MINFER_ERROR_UNSUPPORTED) return 2;
    if (minfer_engine_new(model, NULL, &error) || error.code != MINFER_ERROR_UNSUPPORTED) return 3;
    if (minfer_sequence_new(e, NULL, &error) || error.code != MINFER_ERROR_UNSUPPORTED) return 4;
    if (minfer_resume(s, &error) || error.code != MINFER_ERROR_UNSUPPORTED) return 5;
    minfer_engine_free(e);
    minfer_model_close(model);
    return 0;
}

static void test_a_forked_child_is_refused(void **state) {
    (void)state;
    record want = alone(), said = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_sequence *s = new_sequence(e, NULL, NULL);
    good(minfer_append(s, prompt, PROMPT, &error));
    minfer_event event;
    size_t n;
    good(minfer_step(e, &event, 1, &n, &error));
    take(&said, &event, n);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        _exit(child(e, s));
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    run(e, &said);
    same(&said, &want);
    minfer_engine_free(e);
}

// ---- Threads that look on

typedef struct looker {
    minfer_engine *engine;
    minfer_sequence *sequence;
    atomic_bool stop;
    bool wrong;
    long rounds;
} looker;

static void *look(void *arg) {
    looker *l = arg;
    int32_t evaluated = 0;
    while (!atomic_load(&l->stop)) {
        minfer_engine_stats stats;
        minfer_engine_get_stats(l->engine, &stats, sizeof stats);
        int32_t now = minfer_sequence_n_evaluated(l->sequence);
        bool sane = stats.kv_blocks_used >= 0 && stats.kv_blocks_used <= stats.kv_blocks_total && stats.kv_bytes > 0 &&
                    now >= evaluated && minfer_sequence_n_cached(l->sequence) == 0;
        l->wrong = l->wrong || !sane || (minfer_idle(l->engine) && !minfer_sequence_idle(l->sequence));
        evaluated = now;
        l->rounds++;
    }
    return NULL;
}

static void test_other_threads_look_on(void **state) {
    (void)state;
    record want = alone(), said = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_sequence *s = new_sequence(e, NULL, NULL);
    looker l = {.engine = e, .sequence = s};
    good(minfer_append(s, prompt, PROMPT, &error));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, &l), 0);
    run(e, &said);
    atomic_store(&l.stop, true);
    pthread_join(thread, NULL);
    assert_false(l.wrong);
    same(&said, &want);
    minfer_engine_free(e);
}

// ---- Interrupts

typedef struct interrupter {
    minfer_engine *engine;
    atomic_bool stop;
} interrupter;

static void *interrupt(void *arg) {
    interrupter *i = arg;
    while (!atomic_load(&i->stop)) {
        minfer_interrupt(i->engine);
        usleep(300);
    }
    return NULL;
}

// Steps of which many are interrupted; the number of those that were.
static int run_interrupted(minfer_engine *e, record *r) {
    int cancelled = 0;
    while (!minfer_idle(e)) {
        minfer_event events[2];
        size_t n = 9;
        minfer_error error;
        if (minfer_step(e, events, 2, &n, &error)) {
            take(r, events, n);
        } else {
            if (error.code != MINFER_ERROR_CANCELLED) fail_msg("%s", error.text);
            assert_int_equal(n, 0);
            cancelled++;
        }
    }
    return cancelled;
}

static void test_interrupted_steps_lose_nothing(void **state) {
    (void)state;
    record want = alone();
    for (int round = 0; round < 8; round++) {
        record said = {.n = 0};
        minfer_engine *e = fixture_engine(model, 1, 512);
        minfer_sequence *s = new_sequence(e, NULL, NULL);
        good(minfer_append(s, prompt, PROMPT, &error));
        interrupter i = {.engine = e};
        pthread_t thread;
        minfer_interrupt(e);
        assert_int_equal(pthread_create(&thread, NULL, interrupt, &i), 0);
        int cancelled = run_interrupted(e, &said);
        atomic_store(&i.stop, true);
        pthread_join(thread, NULL);
        assert_true(cancelled > 0);
        same(&said, &want);
        minfer_engine_free(e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floating_point_state),    cmocka_unit_test(test_a_callback_steps_another_engine),
        cmocka_unit_test(test_callbacks_free_and_stop), cmocka_unit_test(test_a_forked_child_is_refused),
        cmocka_unit_test(test_other_threads_look_on),   cmocka_unit_test(test_interrupted_steps_lose_nothing),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
