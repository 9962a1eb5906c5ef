// Filters of single values, all tests, and the functions that templates start with.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "text/jinja/ast.h"
#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#define FILTER(name) static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)
#define TEST(name)   static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)

static bool given(mf_jval v) { return v.type != MF_J_MISSING; }
static bool answer(mf_jval *out, bool yes) { return *out = mf_jbool(yes), true; }

// ---- Filters

FILTER(do_default) {
    bool boolean, truth = true;
    mf_jval v = args->bound[0];
    if (!mf_jarg_true(run, args->bound[2], false, &boolean) || (boolean && !mf_jtruth(run, v, &truth))) return false;
    *out = v;
    if (v.type != MF_J_UNDEFINED && truth) return true;
    *out = args->bound[1];
    return given(args->bound[1]) || mf_jstr_value(run, MF_STR(""), out);
}

FILTER(do_abs) {
    mf_jval v = args->bound[0];
    int order;
    if (v.type == MF_J_UNDEFINED) return mf_jraise(run, "bad operand type for abs(): 'Undefined'");
    if (!mf_jis_number(v)) return mf_jraise(run, "bad operand type for abs(): '%s'", mf_jtype_name(v));
    if (v.type == MF_J_FLOAT) return *out = mf_jreal(fabs(v.real)), true;
    *out = v.type == MF_J_BOOL ? mf_jint(v.boolean) : v;
    return !mf_jcompare_numbers(v, mf_jint(0), &order) || order >= 0 || mf_jnegate(run, v, out);
}

FILTER(do_attr) {
    mf_jval v = args->bound[0], name = args->bound[1];
    if (name.type != MF_J_STR) return mf_jraise(run, "attribute name must be string, not '%s'", mf_jtype_name(name));
    if (v.type == MF_J_DICT && !mf_jmethod_find(MF_J_DICT, mf_jstr_slice(name.str)))
        return mf_jundefined_of(run, v, name, out); // an attribute, never an element
    return mf_jgetattr(run, v, name, out);
}

// int(float(v)), or the default where it is no number.
static bool int_by_float(mf_jrun *run, double value, mf_jval otherwise, mf_jval *out) {
    *out = otherwise;
    return !isfinite(value) || mf_jfrom_real(run, value, out);
}

FILTER(do_int) {
    mf_jval v = args->bound[0], otherwise = given(args->bound[1]) ? args->bound[1] : mf_jint(0);
    int64_t base;
    double value;
    bool ok;
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (mf_jis_int(v)) return *out = v.type == MF_J_BOOL ? mf_jint(v.boolean) : v, true;
    if (v.type == MF_J_FLOAT) {
        if (isinf(v.real)) return mf_jraise(run, "cannot convert float infinity to integer");
        return int_by_float(run, v.real, otherwise, out);
    }
    if (v.type != MF_J_STR) return *out = otherwise, true;
    base = 10;
    mf_jval asked = args->bound[2];
    if (mf_jis_int(asked) && !mf_jindex(run, asked, "base", &base)) return false;
    if (given(asked) && !mf_jis_int(asked)) base = 1; // none: a TypeError, which int() catches
    if (base == 0 || (base >= 2 && base <= 36)) {
        if (!mf_jparse_int(run, mf_jstr_slice(v.str), (int)base, out, &ok)) return false;
        if (ok) return true;
    }
    if (!mf_jparse_real(run, mf_jstr_slice(v.str), &value, &ok)) return false;
    if (ok) return int_by_float(run, value, otherwise, out);
    *out = otherwise;
    return true;
}

FILTER(do_float) {
    mf_jval v = args->bound[0];
    double value;
    bool ok = false;
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (mf_jis_number(v)) {
        if (!mf_jto_real(run, v, &value)) return false;
        return *out = mf_jreal(value), true;
    }
    if (v.type == MF_J_STR && !mf_jparse_real(run, mf_jstr_slice(v.str), &value, &ok)) return false;
    if (ok) return *out = mf_jreal(value), true;
    *out = given(args->bound[1]) ? args->bound[1] : mf_jreal(0);
    return true;
}

// round(float, digits) as CPython: of the exact decimal value, halves to even.
static bool round_real(mf_jrun *run, double value, int64_t digits, mf_jval *out) {
    char text[800];
    double result;
    if (!mf_jpay(run, MF_JCOST_NUMBER * (fabs(value) > 1e15 || digits > 15 ? 8 : 1))) return false;
    if (!isfinite(value) || digits > 330) return *out = mf_jreal(value), true;
    if (digits < -310) return *out = mf_jreal(0 * value), true;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, value);
    } else {
        double unit = 1;
        for (int64_t i = 0; i < -digits; i++) unit *= 10;
        double scaled = value / unit, whole = nearbyint(scaled); // halves to even
        snprintf(text, sizeof text, "%.0fe%d", whole, (int)-digits);
    }
    if (!mf_parse_f64(mf_str_of(text), &result)) return mf_jraise(run, "rounded value too large to represent");
    *out = mf_jreal(result == 0 ? copysign(0, value) : result);
    return true;
}

// round(int, -n): to a multiple of 10^n, halves to even.
static bool round_int(mf_jrun *run, mf_jval v, int64_t digits, mf_jval *out) {
    mf_jval unit, rest, twice;
    int order;
    *out = v.type == MF_J_BOOL ? mf_jint(v.boolean) : v;
    if (digits >= 0) return true;
    if (digits < -MF_JINJA_INT_DIGITS) return *out = mf_jint(0), true; // no integer has so many digits
    if (!mf_jarith(run, MF_J_POW, mf_jint(10), mf_jint(-digits), &unit) || !mf_jarith(run, MF_J_MOD, v, unit, &rest) ||
        !mf_jarith(run, MF_J_SUB, v, rest, out) || !mf_jarith(run, MF_J_MUL, rest, mf_jint(2), &twice))
        return false;
    mf_jcompare_numbers(twice, unit, &order);
    mf_jval quotient, odd;
    if (!mf_jarith(run, MF_J_FLOORDIV, *out, unit, &quotient) || !mf_jarith(run, MF_J_MOD, quotient, mf_jint(2), &odd))
        return false;
    bool up = order > 0 || (order == 0 && odd.integer == 1);
    return !up || mf_jarith(run, MF_J_ADD, *out, unit, out);
}

FILTER(do_round) {
    mf_jval v = args->bound[0], how = args->bound[2], unit, scaled, whole;
    int64_t digits;
    bool common = !given(how) || (mf_jis_str(how) && mf_str_is(mf_jstr_slice(how.str), "common"));
    bool ceiling = mf_jis_str(how) && mf_str_is(mf_jstr_slice(how.str), "ceil");
    if (!common && !ceiling && !(mf_jis_str(how) && mf_str_is(mf_jstr_slice(how.str), "floor")))
        return mf_jraise(run, "method must be common, ceil or floor");
    if (args->bound[1].type == MF_J_NONE && common) { // round(v, None) gives an integer
        if (v.type != MF_J_FLOAT && !mf_jis_int(v)) return mf_jraise(run, "%s can't be rounded", mf_jtype_name(v));
        if (v.type == MF_J_FLOAT) return mf_jfrom_real(run, nearbyint(v.real), out);
        return round_int(run, v, 0, out);
    }
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (!mf_jis_number(v)) return mf_jraise(run, "type %s doesn't define __round__ method", mf_jtype_name(v));
    if (!mf_jarg_int(run, args->bound[1], "precision", 0, &digits)) return false;
    if (common) return v.type == MF_J_FLOAT ? round_real(run, v.real, digits, out) : round_int(run, v, digits, out);
    if (!mf_jarith(run, MF_J_POW, mf_jint(10), mf_jint(digits), &unit) || !mf_jarith(run, MF_J_MUL, v, unit, &scaled))
        return false;
    whole = scaled;
    if (scaled.type == MF_J_FLOAT && !mf_jfrom_real(run, ceiling ? ceil(scaled.real) : floor(scaled.real), &whole))
        return false;
    return mf_jarith(run, MF_J_DIV, whole, unit, out);
}

const mf_jfunction mf_jvalue_filters[] = {
    {"default", "value default_value boolean", 1, do_default},
    {"d", "value default_value boolean", 1, do_default},
    {"abs", "/ x", 1, do_abs},
    {"attr", "obj name", 2, do_attr},
    {"int", "value default base", 1, do_int},
    {"float", "value default", 1, do_float},
    {"round", "value precision method", 1, do_round},
    {NULL, NULL, 0, NULL},
};

const mf_jfunction *mf_jfilter_find(mf_str name) {
    static const mf_jfunction *const tables[] = {mf_jvalue_filters, mf_jtext_filters, mf_jsequence_filters};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const mf_jfunction *f = mf_jfunction_in(tables[i], name);
        if (f) return f;
    }
    return NULL;
}

// ---- Tests

static bool of_type(mf_jargs *args, bool yes, mf_jval *out) { return (void)args, answer(out, yes); }

#define TYPE_TEST(name, condition)            \
    TEST(name) {                              \
        mf_jval v = args->bound[0];           \
        (void)run;                            \
        return of_type(args, condition, out); \
    }

TYPE_TEST(is_defined, v.type != MF_J_UNDEFINED)
TYPE_TEST(is_undefined, v.type == MF_J_UNDEFINED)
TYPE_TEST(is_none, v.type == MF_J_NONE)
TYPE_TEST(is_boolean, v.type == MF_J_BOOL)
TYPE_TEST(is_true, v.type == MF_J_BOOL && v.boolean)
TYPE_TEST(is_false, v.type == MF_J_BOOL && !v.boolean)
TYPE_TEST(is_integer, v.type == MF_J_INT || v.type == MF_J_BIG)
TYPE_TEST(is_float, v.type == MF_J_FLOAT)
TYPE_TEST(is_number, mf_jis_number(v))
TYPE_TEST(is_string, v.type == MF_J_STR)
TYPE_TEST(is_mapping, v.type == MF_J_DICT)
TYPE_TEST(is_iterable, mf_jiterable(v))
TYPE_TEST(is_escaped, v.type == MF_J_STR && v.str->markup)
TYPE_TEST(is_sequence,
          v.type == MF_J_STR || mf_jis_seq(v) || v.type == MF_J_DICT || v.type == MF_J_RANGE || v.type == MF_J_UNDEFINED)
TYPE_TEST(is_callable, v.type == MF_J_FUNCTION || v.type == MF_J_METHOD || v.type == MF_J_MACRO || v.type == MF_J_LOOP ||
                           v.type == MF_J_JOINER || v.type == MF_J_UNDEFINED)
TYPE_TEST(is_sameas, mf_jsame(v, args->bound[1]))

// Whether there is a function of that name. Python looks in a dict, so what can't be hashed is refused.
static bool names_function(mf_jrun *run, mf_jval v, const mf_jfunction *(*find)(mf_str), mf_jval *out) {
    const mf_jdict empty = {0};
    bool ok;
    mf_jdict_find(run, &empty, v, &ok);
    return ok && answer(out, mf_jis_str(v) && find(mf_jstr_slice(v.str)));
}

TEST(is_filter) { return names_function(run, args->bound[0], mf_jfilter_find, out); }
TEST(is_test) { return names_function(run, args->bound[0], mf_jtest_find, out); }

// value % by == rest
static bool remainder_is(mf_jrun *run, mf_jval v, mf_jval by, int64_t rest, mf_jval *out) {
    mf_jval result;
    bool equal;
    if (!mf_jbinary(run, MF_J_MOD, v, by, &result) || !mf_jequal(run, result, mf_jint(rest), &equal)) return false;
    return answer(out, equal);
}

TEST(is_odd) { return remainder_is(run, args->bound[0], mf_jint(2), 1, out); }
TEST(is_even) { return remainder_is(run, args->bound[0], mf_jint(2), 0, out); }
TEST(is_divisibleby) { return remainder_is(run, args->bound[0], args->bound[1], 0, out); }

static bool text_is(mf_jrun *run, mf_jargs *args, const char *method, mf_jval *out) {
    mf_jval text;
    mf_jargs call = {0};
    if (!mf_jto_str(run, args->bound[0], &text)) return false;
    call.self = text;
    return mf_jfunction_call(run, mf_jmethod_find(MF_J_STR, mf_str_of(method)), &call, out);
}

TEST(is_lower) { return text_is(run, args, "islower", out); }
TEST(is_upper) { return text_is(run, args, "isupper", out); }

static bool compared(mf_jrun *run, mf_jargs *args, int op, mf_jval *out) {
    bool yes;
    return mf_jcompare(run, op, args->bound[0], args->bound[1], &yes) && answer(out, yes);
}

TEST(is_eq) { return compared(run, args, MF_J_EQ, out); }
TEST(is_ne) { return compared(run, args, MF_J_NE, out); }
TEST(is_lt) { return compared(run, args, MF_J_LT, out); }
TEST(is_le) { return compared(run, args, MF_J_LE, out); }
TEST(is_gt) { return compared(run, args, MF_J_GT, out); }
TEST(is_ge) { return compared(run, args, MF_J_GE, out); }
TEST(is_in) { return compared(run, args, MF_J_IN, out); }

const mf_jfunction mf_jtests[] = {
    {"defined", "value", 1, is_defined},
    {"undefined", "value", 1, is_undefined},
    {"none", "value", 1, is_none},
    {"boolean", "value", 1, is_boolean},
    {"true", "value", 1, is_true},
    {"false", "value", 1, is_false},
    {"integer", "value", 1, is_integer},
    {"float", "value", 1, is_float},
    {"number", "value", 1, is_number},
    {"string", "value", 1, is_string},
    {"mapping", "value", 1, is_mapping},
    {"iterable", "value", 1, is_iterable},
    {"sequence", "value", 1, is_sequence},
    {"callable", "/ obj", 1, is_callable},
    {"escaped", "value", 1, is_escaped},
    {"sameas", "value other", 2, is_sameas},
    {"filter", "value", 1, is_filter},
    {"test", "value", 1, is_test},
    {"odd", "value", 1, is_odd},
    {"even", "value", 1, is_even},
    {"divisibleby", "value num", 2, is_divisibleby},
    {"lower", "value", 1, is_lower},
    {"upper", "value", 1, is_upper},
    {"in", "value seq", 2, is_in},
    {"eq", "/ a b", 2, is_eq},
    {"equalto", "/ a b", 2, is_eq},
    {"==", "/ a b", 2, is_eq},
    {"ne", "/ a b", 2, is_ne},
    {"!=", "/ a b", 2, is_ne},
    {"lt", "/ a b", 2, is_lt},
    {"lessthan", "/ a b", 2, is_lt},
    {"<", "/ a b", 2, is_lt},
    {"le", "/ a b", 2, is_le},
    {"<=", "/ a b", 2, is_le},
    {"gt", "/ a b", 2, is_gt},
    {"greaterthan", "/ a b", 2, is_gt},
    {">", "/ a b", 2, is_gt},
    {"ge", "/ a b", 2, is_ge},
    {">=", "/ a b", 2, is_ge},
    {NULL, NULL, 0, NULL},
};

const mf_jfunction *mf_jtest_find(mf_str name) { return mf_jfunction_in(mf_jtests, name); }

bool mf_jcall_named(mf_jrun *run, bool filter, mf_jval name, mf_jval value, const mf_jargs *rest, size_t skip,
                    mf_jval *out) {
    const char *what = filter ? "filter" : "test";
    if (!mf_jpay(run, 2 * MF_JCOST_LOOKUP)) return false;
    if (name.type != MF_J_STR) return mf_jraise(run, "No %s named by a %s", what, mf_jtype_name(name));
    const mf_jfunction *f = (filter ? mf_jfilter_find : mf_jtest_find)(mf_jstr_slice(name.str));
    int shown = name.str->len < 40 ? (int)name.str->len : 40;
    if (!f) return mf_jraise(run, "No %s named '%.*s'", what, shown, name.str->ptr);
    if (!f->run) return mf_jfail(run, MF_ERR_UNSUPPORTED, "the %s '%s' is not supported", what, f->name);
    mf_jargs args = {.n = 1 + (rest->n > skip ? rest->n - skip : 0), .kw = rest->kw, .n_kw = rest->n_kw};
    args.pos = mf_jalloc(run, args.n, sizeof *args.pos);
    if (!args.pos) return false;
    args.pos[0] = value;
    for (size_t i = 1; i < args.n; i++) args.pos[i] = rest->pos[skip + i - 1];
    if (!mf_jenter(run)) return false;
    bool ok = mf_jfunction_call(run, f, &args, out);
    mf_jleave(run);
    return ok;
}
