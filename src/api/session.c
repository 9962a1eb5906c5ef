// Sessions: a coat over mf_session; the sequence holds it.
#include "engine/session.h"
#include "api/api.h"

static bool check(const minfer_sequence *s, const char *path, mf_error *err) {
    return mf_api_check_open(s, err) && mf_api_need(path, "the path", err);
}

bool minfer_session_new(minfer_sequence *s, const char *path, minfer_error *error) {
    mf_error err = {0};
    mf_session *session = check(s, path, &err) ? mf_session_new(s->sequence, path, &err) : NULL;
    if (!session) return mf_api_refuse(error, &err);
    s->session = session;
    return true;
}

bool minfer_session_open(minfer_sequence *s, const char *path, minfer_error *error) {
    mf_error err = {0};
    mf_session *session = check(s, path, &err) ? mf_session_open(s->sequence, path, &err) : NULL;
    if (!session) return mf_api_refuse(error, &err);
    s->session = session;
    mf_stream_restart(&s->stream);
    return true;
}

bool minfer_session_commit(minfer_sequence *s, const void *state, size_t n, minfer_error *error) {
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
