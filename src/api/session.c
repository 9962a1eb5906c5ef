// Sessions: a coat over mf_session; the sequence holds it.
#include "engine/session.h"
#include "api/api.h"

static bool check(const minfer_sequence *s, const char *path, mf_error *err) {
    return mf_api_check_open(s, err) && mf_api_need(path, "the path", err);
}

bool minfer_session_new(minfer_sequence *s, const char *path, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_session *session = check(s, path, &err) ? mf_session_new(s->sequence, path, &err) : NULL;
    if (!session) return mf_api_refuse(error, &err);
    s->session = session;
    return true;
}

// Brings the text to where the loaded answer is, so that resuming it goes on within a character and a stop text.
static void replay(minfer_sequence *s) {
    const int32_t *ids = mf_sequence_tokens(s->sequence);
    int32_t n = mf_sequence_n_tokens(s->sequence), n_vocab = 0;
    mf_stream_restart(&s->stream);
    if (s->owner->model->tokenizer) n_vocab = mf_tokenizer_n_vocab(s->owner->model->tokenizer);
    for (int32_t i = n - mf_sequence_n_generated(s->sequence); i < n; i++)
        if (ids[i] < n_vocab && !mf_stream_token(&s->stream, ids[i])) break;
    mf_stream_taken(&s->stream);
}

static bool load(minfer_sequence *s, const char *path, bool recover, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_session *session = NULL;
    if (check(s, path, &err))
        session = recover ? mf_session_recover(s->sequence, path, &err) : mf_session_open(s->sequence, path, &err);
    if (!session) return mf_api_refuse(error, &err);
    s->session = session;
    replay(s);
    mf_api_publish(s->owner);
    return true;
}

bool minfer_session_open(minfer_sequence *s, const char *path, minfer_error *error) { return load(s, path, false, error); }

bool minfer_session_recover(minfer_sequence *s, const char *path, minfer_error *error) { return load(s, path, true, error); }

bool minfer_session_commit(minfer_sequence *s, const void *state, size_t n, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = mf_api_check_open(s, &err) && mf_api_need(s->session, "the session", &err) &&
              (n == 0 || mf_api_need(state, "the state", &err)) && mf_session_commit(s->session, state, n, &err);
    return ok || mf_api_refuse(error, &err);
}

const void *minfer_session_state(const minfer_sequence *s, size_t *n) {
    size_t none;
    if (!n) n = &none;
    *n = 0;
    return s->session ? mf_session_state(s->session, n) : NULL;
}

void minfer_session_close(minfer_sequence *s) {
    mf_session_close(s->session);
    s->session = NULL;
}
