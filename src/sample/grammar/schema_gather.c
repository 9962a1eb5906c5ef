// Reads the keywords of schemas into a record. A table says of each keyword what is done with it; what is not in the table is refused.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/schema_reader.h"

void *mf_schema_no_memory(mf_schema_reader *r) {
    mf_grammar_no_memory(r->arena, "the schema", r->err);
    return NULL;
}

void *mf_schema_refuse(mf_schema_reader *r, mf_code code, const char *at, const char *format, ...) {
    char why[320];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    mf_fail(r->err, code, "the schema at '#%.150s': %s", at, why);
    return NULL;
}

bool mf_schema_spend(mf_schema_reader *r, size_t steps) {
    if (steps <= MF_SCHEMA_MAX_WORK && (r->work += (uint32_t)steps) <= MF_SCHEMA_MAX_WORK) return true;
    r->work = MF_SCHEMA_MAX_WORK;
    return mf_fail(r->err, MF_ERR_LIMIT, "the schema takes too many steps to read");
}

const mf_dfa *mf_schema_paid(mf_schema_reader *r, const mf_dfa *d) {
    return d && mf_schema_spend(r, d->work / 4) ? d : NULL;
}

// A pointer's part, with ~ and / spelled as pointers have them.
static void add_part(mf_buf *out, mf_str part) {
    mf_buf_char(out, '/');
    for (size_t i = 0; i < part.len && i < 200; i++) {
        if (part.ptr[i] == '~') mf_buf_text(out, "~0");
        if (part.ptr[i] == '/') mf_buf_text(out, "~1");
        if (part.ptr[i] != '~' && part.ptr[i] != '/') mf_buf_char(out, part.ptr[i]);
    }
}

const char *mf_schema_join(mf_schema_reader *r, const char *at, const char *key, mf_str name) {
    mf_buf out = {0};
    mf_buf_text(&out, at);
    add_part(&out, mf_str_of(key));
    if (name.ptr) add_part(&out, name);
    const char *copy = out.failed ? NULL : mf_arena_copy(r->arena, out.data, out.len);
    free(out.data);
    return copy ? copy : mf_schema_no_memory(r);
}

static const char *join_number(mf_schema_reader *r, const char *at, const char *key, size_t i) {
    char text[24];
    snprintf(text, sizeof text, "%zu", i);
    return mf_schema_join(r, at, key, mf_str_of(text));
}

bool mf_schema_any_list(mf_schema_list *list) {
    for (size_t i = 0; i < list->len; i++) {
        const mf_json *s = list->data[i].json;
        if (!(s->kind == MF_JSON_BOOL && s->boolean) && !(s->kind == MF_JSON_OBJECT && s->count == 0)) return false;
    }
    return true;
}

void mf_schema_record_free(mf_schema_record *x) {
    for (size_t i = 0; i < x->prefix.len; i++) free(x->prefix.data[i].data);
    for (size_t i = 0; i < x->properties.len; i++) free(x->properties.data[i].schemas.data);
    void *all[] = {x->enums.data,    x->multiples.data,  x->prefix.data, x->items.data,      x->properties.data,
                   x->patterns.data, x->additional.data, x->names.data,  x->dependents.data, x->choices.data};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

// ---- References

static const mf_json *find_anchor(mf_schema_reader *r, const mf_json *json, mf_str name, int depth) {
    const mf_json *anchor = mf_json_get(json, "$anchor");
    if (anchor && anchor->kind == MF_JSON_STRING && mf_str_eq(anchor->text, name)) return json;
    if (depth > 500 || !mf_schema_spend(r, 1)) return NULL;
    for (const mf_json *x = json->child; x; x = x->next) {
        if (json->kind == MF_JSON_OBJECT && (mf_str_is(x->key, "enum") || mf_str_is(x->key, "const"))) continue;
        const mf_json *found = find_anchor(r, x, name, depth + 1);
        if (found) return found;
    }
    return NULL;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

// A part of a pointer out of a URI's fragment: %25 and ~0, ~1 undone.
static bool decode_part(mf_arena *arena, mf_str part, mf_str *out) {
    char *text = mf_arena_alloc(arena, part.len + 1, 1);
    if (!text) return false;
    size_t n = 0;
    for (size_t i = 0; i < part.len; i++) {
        bool escape =
            part.ptr[i] == '%' && i + 2 < part.len && hex_digit(part.ptr[i + 1]) >= 0 && hex_digit(part.ptr[i + 2]) >= 0;
        text[n++] = escape ? (char)(hex_digit(part.ptr[i + 1]) * 16 + hex_digit(part.ptr[i + 2])) : part.ptr[i];
        i += escape ? 2 : 0;
    }
    *out = (mf_str){text, 0};
    for (size_t i = 0; i < n; i++) {
        bool escape = text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1');
        text[out->len++] = escape ? (text[i + 1] == '0' ? '~' : '/') : text[i];
        i += escape;
    }
    return true;
}

const mf_json *mf_schema_member(const mf_json *json, mf_str name) {
    const mf_json *found = NULL;
    size_t i = 0;
    int64_t number;
    if (json->kind == MF_JSON_ARRAY && mf_parse_i64(name, &number) && number >= 0)
        for (const mf_json *x = json->child; x; x = x->next)
            if ((int64_t)i++ == number) return x;
    for (const mf_json *x = json->kind == MF_JSON_OBJECT ? json->child : NULL; x; x = x->next)
        if (mf_str_eq(x->key, name)) found = x;
    return found;
}

static const mf_json *resolve(mf_schema_reader *r, mf_str ref) {
    if (r->id.len && mf_str_starts(ref, r->id)) ref = (mf_str){ref.ptr + r->id.len, ref.len - r->id.len};
    if (ref.len == 0) return r->root;
    if (ref.ptr[0] != '#') return NULL;
    ref.ptr++, ref.len--;
    if (ref.len == 0) return r->root;
    if (ref.ptr[0] != '/') return find_anchor(r, r->root, ref, 0);
    const mf_json *at = r->root;
    while (at && ref.len > 0) {
        ref.ptr++, ref.len--;
        const char *end = memchr(ref.ptr, '/', ref.len);
        size_t n = end ? (size_t)(end - ref.ptr) : ref.len;
        mf_str part;
        at = decode_part(r->arena, (mf_str){ref.ptr, n}, &part) ? mf_schema_member(at, part) : NULL;
        ref.ptr += n, ref.len -= n;
    }
    return at;
}

// ---- Keywords

typedef struct gathering {
    mf_schema_reader *r;
    mf_schema_record *out;
    const mf_json *schema; // that is being read
    const char *at;
    const char *key;
} gathering;

static bool wrong(gathering *g, const char *wanted) {
    mf_schema_refuse(g->r, MF_ERR_FORMAT, g->at, "%s must be %s", g->key, wanted);
    return false;
}

static bool push(gathering *g, mf_schema_list *list, const mf_json *json, const char *at) {
    if (!at) return false;
    if (json->kind != MF_JSON_OBJECT && json->kind != MF_JSON_BOOL) return wrong(g, "made of schemas");
    return mf_array_push(list, ((mf_schema_at){json, at})) || (mf_schema_no_memory(g->r), false);
}

static bool no_memory(gathering *g) { return mf_schema_no_memory(g->r), false; }

static bool take_count(gathering *g, const mf_json *v, uint32_t *out) {
    int64_t n;
    mf_decimal d;
    if (v->kind != MF_JSON_NUMBER || !mf_decimal_read(g->r->arena, v->text, &d) || d.negative || !mf_decimal_is_whole(&d))
        return wrong(g, "a whole number from 0 on");
    *out = mf_parse_i64(d.whole, &n) && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX - 1;
    return true;
}

static bool at_least(gathering *g, const mf_json *v, uint32_t *field) {
    uint32_t n = 0;
    if (!take_count(g, v, &n)) return false;
    if (n > *field) *field = n;
    return true;
}

static bool at_most(gathering *g, const mf_json *v, uint32_t *field) {
    uint32_t n = 0;
    if (!take_count(g, v, &n)) return false;
    if (n < *field) *field = n;
    return true;
}

static bool k_min_length(gathering *g, const mf_json *v) { return at_least(g, v, &g->out->min_length); }
static bool k_max_length(gathering *g, const mf_json *v) { return at_most(g, v, &g->out->max_length); }
static bool k_min_items(gathering *g, const mf_json *v) { return at_least(g, v, &g->out->min_items); }
static bool k_max_items(gathering *g, const mf_json *v) { return at_most(g, v, &g->out->max_items); }
static bool k_min_properties(gathering *g, const mf_json *v) { return at_least(g, v, &g->out->min_properties); }
static bool k_max_properties(gathering *g, const mf_json *v) { return at_most(g, v, &g->out->max_properties); }

static unsigned type_bits(mf_str name) {
    static const struct {
        const char *name;
        unsigned bits;
    } types[] = {{"null", MF_S_NULL},
                 {"boolean", MF_S_BOOLEAN},
                 {"object", MF_S_OBJECT},
                 {"array", MF_S_ARRAY},
                 {"string", MF_S_STRING},
                 {"integer", MF_S_INTEGER},
                 {"number", MF_S_NUMBER | MF_S_INTEGER}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (mf_str_is(name, types[i].name)) return types[i].bits;
    return 0;
}

static bool k_type(gathering *g, const mf_json *v) {
    unsigned bits = 0;
    const mf_json *one = v->kind == MF_JSON_ARRAY ? v->child : v, *nullable = mf_json_get(g->schema, "nullable");
    for (const mf_json *x = one; x; x = v->kind == MF_JSON_ARRAY ? x->next : NULL) {
        unsigned more = x->kind == MF_JSON_STRING ? type_bits(x->text) : 0;
        if (!more) return wrong(g, "one or several of null, boolean, object, array, string, number, integer");
        bits |= more;
    }
    if (nullable && nullable->kind == MF_JSON_BOOL && nullable->boolean) bits |= MF_S_NULL;
    g->out->types &= bits;
    return true;
}

static bool k_enum(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_ARRAY) return wrong(g, "a list of values");
    if (!g->out->values) return g->out->values = v, true;
    return mf_array_push(&g->out->enums, ((mf_schema_at){v, g->at})) || no_memory(g);
}

static bool k_const(gathering *g, const mf_json *v) {
    if (!g->out->one) return g->out->one = v, true;
    mf_json *list = mf_arena_alloc(g->r->arena, 1, sizeof *list), *item = mf_arena_alloc(g->r->arena, 1, sizeof *item);
    if (!list || !item) return no_memory(g);
    *item = *v;
    item->next = NULL;
    *list = (mf_json){.kind = MF_JSON_ARRAY, .child = item, .count = 1};
    return mf_array_push(&g->out->enums, ((mf_schema_at){list, g->at})) || no_memory(g);
}

static bool meet(gathering *g, const mf_dfa *d) {
    mf_error why = {0};
    const mf_dfa *both = !d ? NULL : g->out->text ? mf_dfa_intersect(g->r->arena, g->out->text, d, &why) : d;
    if (d && !both) mf_schema_refuse(g->r, why.code, g->at, "%s: %s", g->key, why.text);
    g->out->text = both;
    return both && (both == d || mf_schema_paid(g->r, both));
}

// What matches a pattern, as a whole or somewhere. The same schema may be read for many alternatives: its patterns are made once.
static const mf_dfa *regex(gathering *g, mf_str pattern, bool whole) {
    mf_schema_reader *r = g->r;
    mf_map *known = whole ? &r->formats : &r->patterns;
    mf_error why = {0};
    uint32_t number;
    if (pattern.len > 65536) return mf_schema_refuse(r, MF_ERR_LIMIT, g->at, "%s has over 65536 bytes", g->key);
    if (mf_map_get(known, pattern, &number)) return r->automata.data[number];
    const mf_dfa *d = mf_dfa_of_regex(r->arena, pattern, whole, &why);
    if (!d) return mf_schema_refuse(r, why.code, g->at, "%s '%.80s': %s", g->key, pattern.ptr, why.text);
    number = (uint32_t)r->automata.len;
    if (!mf_array_push(&r->automata, d) || !mf_map_set(known, pattern, number, NULL)) return mf_schema_no_memory(r);
    return mf_schema_paid(r, d);
}

static bool k_pattern(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_STRING) return wrong(g, "a text");
    return meet(g, regex(g, v->text, false));
}

#define DATE                                                                                                               \
    "((?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-" \
    "8])))"                                                                                                                \
    "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[048]|[2468][048]|[13579][26])00)-02-29)"
#define TIME  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define ALNUM "[A-Za-z0-9]"
#define INNER "[A-Za-z0-9-]"
#define LABEL                                                                                                               \
    ALNUM "(?:" ALNUM "|" INNER ALNUM "|" INNER INNER ALNUM "|" INNER "(?:" ALNUM INNER "|-" ALNUM ")" INNER "{0,58}" ALNUM \
          ")?"
#define BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4 BYTE "(?:\\." BYTE "){3}"
#define H16  "[0-9A-Fa-f]{1,4}"
#define IPV6                                                                                                               \
    "(?:(?:" H16 ":){7}" H16 "|(?:" H16 ":){1,7}:|(?:" H16 ":){1,6}:" H16 "|(?:" H16 ":){1,5}(?::" H16 "){2}|(?:" H16      \
    ":){1,4}(?::" H16 "){3}|(?:" H16 ":){1,3}(?::" H16 "){4}|(?:" H16 ":){1,2}(?::" H16 "){5}|" H16 ":(?::" H16            \
    "){6}|:(?:(?::" H16 "){1,7}|:)|(?:" H16 ":){6}" IPV4 "|::(?:" H16 ":){0,5}" IPV4 "|(?:" H16 ":){1,5}:" IPV4 "|(?:" H16 \
    ":){1,4}:" H16 ":" IPV4 "|(?:" H16 ":){1,3}(?::" H16 "){2}:" IPV4 "|(?:" H16 ":){1,2}(?::" H16 "){3}:" IPV4 "|" H16    \
    ":(?::" H16 "){4}:" IPV4 ")"
#define PERCENT   "%[0-9A-Fa-f]{2}"
#define NAME      "(?:[A-Za-z0-9._~!$&'()*+,;=-]|" PERCENT ")*"
#define USER      "(?:[A-Za-z0-9._~:!$&'()*+,;=-]|" PERCENT ")*"
#define PCHAR     "(?:[A-Za-z0-9._~:@!$&'()*+,;=-]|" PERCENT ")"
#define HOST      "(?:\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~:!$&'()*+,;=-]+)\\]|" NAME ")"
#define AUTHORITY "(?:" USER "@)?" HOST "(?::\\d*)?"
#define SEGMENTS  "(?:/" PCHAR "*)*"
#define QUERY     "(?:[/?]|" PCHAR ")*"

static const struct {
    const char *name, *regex;
    uint32_t longest; // 0: of any length
} formats[] = {
    {"date", DATE, 0},
    {"time", TIME, 0},
    {"date-time", DATE "[Tt]" TIME, 0},
    {"duration",
     "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))?"
     "|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))",
     0},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}", 0},
    {"email", "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@" LABEL "(?:\\." LABEL ")*", 0},
    {"hostname", LABEL "(?:\\." LABEL ")*", 253},
    {"ipv4", IPV4, 0},
    {"ipv6", IPV6, 0},
    {"uri",
     "[A-Za-z][A-Za-z0-9+.-]*:(?://" AUTHORITY SEGMENTS "|/?" PCHAR "+" SEGMENTS "|/?)(?:\\?" QUERY ")?(?:#" QUERY ")?", 0},
};

static bool k_format(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_STRING) return wrong(g, "a text");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (mf_str_is(v->text, formats[i].name)) {
            if (formats[i].longest && g->out->max_length > formats[i].longest) g->out->max_length = formats[i].longest;
            return meet(g, regex(g, mf_str_of(formats[i].regex), true));
        }
    mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "the format '%.60s' is not supported", v->text.ptr);
    return false;
}

// ---- Numbers

static bool take_bound(gathering *g, const mf_json *v, bool exclusive, bool least) {
    mf_schema_bound *b = least ? &g->out->least : &g->out->most;
    mf_decimal d;
    if (v->kind != MF_JSON_NUMBER) return wrong(g, "a number");
    if (!mf_decimal_read(g->r->arena, v->text, &d)) return wrong(g, "a number with an exponent within 400");
    int order = b->there ? mf_decimal_compare(&d, &b->value) : least ? 1 : -1;
    if (order == 0) b->exclusive = b->exclusive || exclusive;
    if (least ? order > 0 : order < 0) *b = (mf_schema_bound){true, exclusive, d};
    return true;
}

// exclusiveMinimum of draft 4 is a boolean beside minimum.
static bool also_exclusive(const gathering *g, const char *key) {
    const mf_json *v = mf_json_get(g->schema, key);
    return v && v->kind == MF_JSON_BOOL && v->boolean;
}

static bool k_minimum(gathering *g, const mf_json *v) {
    return take_bound(g, v, also_exclusive(g, "exclusiveMinimum"), true);
}
static bool k_maximum(gathering *g, const mf_json *v) {
    return take_bound(g, v, also_exclusive(g, "exclusiveMaximum"), false);
}
static bool k_above(gathering *g, const mf_json *v) { return v->kind == MF_JSON_BOOL || take_bound(g, v, true, true); }
static bool k_below(gathering *g, const mf_json *v) { return v->kind == MF_JSON_BOOL || take_bound(g, v, true, false); }

static bool k_multiple_of(gathering *g, const mf_json *v) {
    mf_decimal d;
    int64_t n;
    if (v->kind != MF_JSON_NUMBER || !mf_decimal_read(g->r->arena, v->text, &d) || d.negative)
        return wrong(g, "a number over 0");
    if (!mf_decimal_is_whole(&d) || !mf_parse_i64(d.whole, &n) || n < 1 || n > 10000) {
        mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "multipleOf is %.40s; whole numbers from 1 to 10000 are supported",
                         v->text.ptr);
        return false;
    }
    return mf_array_push(&g->out->multiples, (uint32_t)n) || no_memory(g);
}

// ---- Arrays

static bool prefix_schemas(gathering *g, const mf_json *v) {
    size_t i = 0;
    if (v->kind != MF_JSON_ARRAY) return wrong(g, "a list of schemas");
    if (v->count > MF_SCHEMA_MAX_MEMBERS) {
        mf_schema_refuse(g->r, MF_ERR_LIMIT, g->at, "%s has over %d schemas", g->key, MF_SCHEMA_MAX_MEMBERS);
        return false;
    }
    for (const mf_json *x = v->child; x; x = x->next, i++) {
        if (i == g->out->prefix.len) { // places behind another schema's prefix must be what its items say
            mf_schema_list fresh = {0};
            for (size_t k = 0; k < g->out->items.len; k++)
                if (!mf_array_push(&fresh, g->out->items.data[k])) return no_memory(g);
            if (!mf_array_push(&g->out->prefix, fresh)) return no_memory(g);
        }
        if (!push(g, &g->out->prefix.data[i], x, join_number(g->r, g->at, g->key, i))) return false;
    }
    return true;
}

// What holds for the items behind a schema's own n of a prefix.
static bool rest_schema(gathering *g, const mf_json *v, size_t n) {
    const char *at = mf_schema_join(g->r, g->at, g->key, (mf_str){0});
    for (size_t i = n; i < g->out->prefix.len; i++)
        if (!push(g, &g->out->prefix.data[i], v, at)) return false;
    return push(g, &g->out->items, v, at);
}

static bool k_prefix_items(gathering *g, const mf_json *v) {
    const mf_json *items = mf_json_get(g->schema, "items");
    if (!prefix_schemas(g, v)) return false;
    g->key = "items";
    return !items || items->kind == MF_JSON_ARRAY || rest_schema(g, items, v->count);
}

static bool k_items(gathering *g, const mf_json *v) {
    const mf_json *prefix = mf_json_get(g->schema, "prefixItems"), *rest = mf_json_get(g->schema, "additionalItems");
    if (prefix) return true; // read with it
    if (v->kind != MF_JSON_ARRAY) return rest_schema(g, v, 0);
    if (!prefix_schemas(g, v)) return false; // of drafts up to 2019
    g->key = "additionalItems";
    return !rest || rest_schema(g, rest, v->count);
}

static bool k_unique_items(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_BOOL) return wrong(g, "true or false");
    g->out->unique = g->out->unique || v->boolean;
    return true;
}

// ---- Objects

static mf_schema_property *property(gathering *g, mf_str name) {
    if (!mf_schema_spend(g->r, g->out->properties.len)) return NULL;
    for (size_t i = 0; i < g->out->properties.len; i++)
        if (mf_str_eq(g->out->properties.data[i].name, name)) return &g->out->properties.data[i];
    if (g->out->properties.len == MF_SCHEMA_MAX_MEMBERS)
        return mf_schema_refuse(g->r, MF_ERR_LIMIT, g->at, "%s: over %d names in one object", g->key, MF_SCHEMA_MAX_MEMBERS);
    if (!mf_array_push(&g->out->properties, ((mf_schema_property){name, {0}, false}))) return mf_schema_no_memory(g->r);
    return &g->out->properties.data[g->out->properties.len - 1];
}

static bool k_properties(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_OBJECT) return wrong(g, "an object of schemas");
    for (const mf_json *x = v->child; x; x = x->next) {
        mf_schema_property *p = property(g, x->key);
        if (!p || !push(g, &p->schemas, x, mf_schema_join(g->r, g->at, g->key, x->key))) return false;
    }
    return true;
}

static bool k_required(gathering *g, const mf_json *v) {
    if (v->kind == MF_JSON_BOOL && g->r->draft == 4) return true;
    if (v->kind != MF_JSON_ARRAY) return wrong(g, "a list of names");
    for (const mf_json *x = v->child; x; x = x->next) {
        mf_schema_property *p = x->kind == MF_JSON_STRING ? property(g, x->text) : NULL;
        if (!p) return x->kind == MF_JSON_STRING ? false : wrong(g, "a list of names");
        p->required = true;
    }
    return true;
}

static bool k_pattern_properties(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_OBJECT) return wrong(g, "an object of schemas");
    for (const mf_json *x = v->child; x; x = x->next) {
        mf_schema_pattern p = {x->key, regex(g, x->key, false), {x, mf_schema_join(g->r, g->at, g->key, x->key)}};
        if (!p.dfa || !p.schema.at) return false;
        if (x->kind != MF_JSON_OBJECT && x->kind != MF_JSON_BOOL) return wrong(g, "made of schemas");
        if (!mf_array_push(&g->out->patterns, p)) return no_memory(g);
    }
    return true;
}

static bool add_additional(gathering *g, const mf_json *v) {
    const char *at = mf_schema_join(g->r, g->at, "additionalProperties", (mf_str){0});
    if (!at) return false;
    if (v->kind != MF_JSON_OBJECT && v->kind != MF_JSON_BOOL) return wrong(g, "a schema");
    return mf_array_push(&g->out->additional, ((mf_schema_additional){{v, at}, g->schema})) || no_memory(g);
}

static bool k_additional(gathering *g, const mf_json *v) { return add_additional(g, v); }

static bool k_property_names(gathering *g, const mf_json *v) {
    return push(g, &g->out->names, v, mf_schema_join(g->r, g->at, g->key, (mf_str){0}));
}

static bool k_dependent_required(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_OBJECT) return wrong(g, "an object of lists of names");
    for (const mf_json *x = v->child; x; x = x->next) {
        if (x->kind != MF_JSON_ARRAY) {
            mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "%s with schemas is not supported", g->key);
            return false;
        }
        if (!property(g, x->key)) return false;
        for (const mf_json *n = x->child; n; n = n->next)
            if (n->kind != MF_JSON_STRING || !property(g, n->text)) return wrong(g, "an object of lists of names");
    }
    return mf_array_push(&g->out->dependents, v) || no_memory(g);
}

// ---- Schemas of schemas

static bool k_all_of(gathering *g, const mf_json *v) {
    size_t i = 0;
    if (v->kind != MF_JSON_ARRAY || v->count == 0) return wrong(g, "a list of schemas");
    for (const mf_json *x = v->child; x; x = x->next, i++) {
        const char *at = join_number(g->r, g->at, g->key, i);
        if (!at || !mf_schema_gather(g->r, g->out, (mf_schema_at){x, at})) return false;
    }
    return true;
}

static bool k_any_of(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_ARRAY || v->count == 0) return wrong(g, "a list of schemas");
    const char *at = mf_schema_join(g->r, g->at, g->key, (mf_str){0});
    return at && (mf_array_push(&g->out->choices, ((mf_schema_at){v, at})) || no_memory(g));
}

static bool k_one_of(gathering *g, const mf_json *v) {
    if (g->r->options.strict_oneof && v->count > 1) {
        mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "oneOf would be taken as anyOf, which strict_oneof refuses");
        return false;
    }
    return k_any_of(g, v);
}

static bool k_ref(gathering *g, const mf_json *v) {
    if (v->kind != MF_JSON_STRING) return wrong(g, "a text");
    const mf_json *to = resolve(g->r, v->text);
    if (!to && !mf_schema_spend(g->r, 1)) return false;
    if (!to) {
        mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at,
                         "the reference '%.100s' leads to nothing in this document (none is fetched)", v->text.ptr);
        return false;
    }
    const char *text = mf_arena_copy(g->r->arena, v->text.ptr, v->text.len);
    if (!text) return no_memory(g);
    return mf_schema_gather(g->r, g->out, (mf_schema_at){to, text[0] == '#' ? text + 1 : text});
}

static bool k_ignored(gathering *g, const mf_json *v) {
    (void)g, (void)v;
    return true;
}

static bool k_refused(gathering *g, const mf_json *v) {
    (void)v;
    mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "%s is not supported", g->key);
    return false;
}

static const struct {
    const char *name;
    bool (*read)(gathering *g, const mf_json *value);
} keywords[] = {
    {"type", k_type},
    {"enum", k_enum},
    {"const", k_const},
    {"minLength", k_min_length},
    {"maxLength", k_max_length},
    {"pattern", k_pattern},
    {"format", k_format},
    {"minimum", k_minimum},
    {"maximum", k_maximum},
    {"exclusiveMinimum", k_above},
    {"exclusiveMaximum", k_below},
    {"multipleOf", k_multiple_of},
    {"prefixItems", k_prefix_items},
    {"items", k_items},
    {"minItems", k_min_items},
    {"maxItems", k_max_items},
    {"uniqueItems", k_unique_items},
    {"properties", k_properties},
    {"patternProperties", k_pattern_properties},
    {"additionalProperties", k_additional},
    {"propertyNames", k_property_names},
    {"required", k_required},
    {"minProperties", k_min_properties},
    {"maxProperties", k_max_properties},
    {"dependentRequired", k_dependent_required},
    {"dependencies", k_dependent_required},
    {"allOf", k_all_of},
    {"anyOf", k_any_of},
    {"oneOf", k_one_of},
    {"$ref", k_ref},
    // what says nothing about values
    {"additionalItems", k_ignored},
    {"nullable", k_ignored},
    {"$schema", k_ignored},
    {"$id", k_ignored},
    {"id", k_ignored},
    {"$anchor", k_ignored},
    {"$defs", k_ignored},
    {"definitions", k_ignored},
    {"$comment", k_ignored},
    {"$vocabulary", k_ignored},
    {"title", k_ignored},
    {"description", k_ignored},
    {"default", k_ignored},
    {"example", k_ignored},
    {"examples", k_ignored},
    {"deprecated", k_ignored},
    {"readOnly", k_ignored},
    {"writeOnly", k_ignored},
    {"discriminator", k_ignored},
    {"externalDocs", k_ignored},
    {"xml", k_ignored},
    {"contentEncoding", k_ignored},
    {"contentMediaType", k_ignored},
    {"contentSchema", k_ignored},
    {"then", k_ignored},
    {"else", k_ignored},
    {"minContains", k_ignored},
    {"maxContains", k_ignored},
    // what would, and is not understood
    {"not", k_refused},
    {"if", k_refused},
    {"contains", k_refused},
    {"unevaluatedItems", k_refused},
    {"unevaluatedProperties", k_refused},
    {"dependentSchemas", k_refused},
    {"$dynamicRef", k_refused},
    {"$dynamicAnchor", k_refused},
    {"$recursiveRef", k_refused},
    {"$recursiveAnchor", k_refused},
};

#define N_KEYWORDS (sizeof keywords / sizeof keywords[0])

static bool read_keyword(gathering *g, const mf_json *member_of) {
    mf_str key = member_of->key;
    if (!mf_schema_spend(g->r, 20)) return false;
    for (size_t i = 0; i < N_KEYWORDS; i++) {
        if (!mf_str_is(key, keywords[i].name)) continue;
        g->key = keywords[i].name;
        return keywords[i].read(g, member_of);
    }
    if (mf_str_starts(key, MF_STR("x-"))) return true;
    mf_schema_refuse(g->r, MF_ERR_UNSUPPORTED, g->at, "the keyword '%.60s' is not supported", key.ptr);
    return false;
}

static const mf_json no_schema = {.kind = MF_JSON_BOOL};

static bool read_all(gathering *g) {
    const mf_json *ref = mf_json_get(g->schema, "$ref"), *properties = mf_json_get(g->schema, "properties");
    if (ref && g->r->draft < 2019) return g->key = "$ref", k_ref(g, ref); // its neighbours don't count there
    for (const mf_json *x = g->schema->child; x; x = x->next)
        if (!read_keyword(g, x)) return false;
    bool closes = g->r->options.closed && properties && properties->count && !mf_json_get(g->schema, "additionalProperties");
    return !closes || add_additional(g, &no_schema);
}

bool mf_schema_gather(mf_schema_reader *r, mf_schema_record *out, mf_schema_at schema) {
    gathering g = {r, out, schema.json, schema.at, "a schema"};
    if (!out->at) out->at = schema.at;
    if (schema.json->kind == MF_JSON_BOOL) {
        out->nothing = out->nothing || !schema.json->boolean;
        return true;
    }
    if (schema.json->kind != MF_JSON_OBJECT) return wrong(&g, "an object, true or false");
    if (++r->depth > MF_SCHEMA_MAX_DEPTH) {
        mf_schema_refuse(r, MF_ERR_LIMIT, schema.at, "schemas in schemas, or a reference to itself, over %d deep",
                         MF_SCHEMA_MAX_DEPTH);
        return false;
    }
    bool ok = read_all(&g);
    r->depth--;
    return ok;
}
