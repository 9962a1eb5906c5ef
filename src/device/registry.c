#include "device/registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const mf_device_entry *find(const mf_device_entry *known, size_t n, mf_str name) {
    for (size_t i = 0; i < n; i++)
        if (strlen(known[i].name) == name.len && strncasecmp(known[i].name, name.ptr, name.len) == 0) return &known[i];
    return NULL;
}

static bool refuse_unknown(const mf_device_entry *known, size_t n, mf_str name, mf_error *err) {
    char names[160] = "";
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", known[i].name);
    }
    return mf_fail(err, MF_ERR_ARGUMENT, "unknown backend '%.*s'; known: %s", (int)(name.len < 60 ? name.len : 60), name.ptr,
                   names);
}

static bool open_one(mf_device_list *list, const mf_device_entry *entry, const mf_device_options *options, mf_error *err) {
    for (int32_t i = 0; i < list->n; i++)
        if (list->device[i]->class == entry->class && entry->class) return true; // named twice
    if (!entry->class)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "backend '%s' is not compiled into this program", entry->name);
    if (list->n == MF_MAX_DEVICES) return mf_fail(err, MF_ERR_LIMIT, "more than %d backends", MF_MAX_DEVICES);
    mf_device *device = entry->class->open(options, err);
    if (!device) return mf_fail_prefix(err, "backend '%s' is not usable here", entry->name);
    list->device[list->n++] = device;
    return true;
}

bool mf_device_list_open(mf_device_list *list, const mf_device_entry *known, size_t n_known, const char *names,
                         const mf_device_options *options, mf_error *err) {
    *list = (mf_device_list){0};
    const char *at = names ? names : "";
    while (*at) {
        size_t len = strcspn(at, ",");
        mf_str name = {at, len};
        const mf_device_entry *entry = find(known, n_known, name);
        bool ok = entry ? open_one(list, entry, options, err) : refuse_unknown(known, n_known, name, err);
        if (!ok) goto fail;
        at += len;
        if (*at) at++;
    }
    const mf_device_entry *cpu = find(known, n_known, MF_STR("cpu"));
    if (cpu && open_one(list, cpu, options, err)) return true;
fail:
    mf_device_list_close(list);
    return false;
}

void mf_device_list_close(mf_device_list *list) {
    for (int32_t i = 0; i < list->n; i++) list->device[i]->class->close(list->device[i]);
    list->n = 0;
}
