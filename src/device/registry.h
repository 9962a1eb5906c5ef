// Choosing devices by name out of a table that the caller brings: this room does not know which devices exist.
#ifndef MF_DEVICE_REGISTRY_H
#define MF_DEVICE_REGISTRY_H

#include "device/device.h"

typedef struct mf_device_entry {
    const char *name;             // "cpu", "cuda", …
    const mf_device_class *class; // NULL: known, but not compiled into this program
} mf_device_entry;

#define MF_MAX_DEVICES 8

typedef struct mf_device_list { // in priority order; cpu is always the last resort
    mf_device *device[MF_MAX_DEVICES];
    int32_t n;
} mf_device_list;

// Opens the devices of a comma-separated list of names (any case; NULL or "": cpu alone). Three refusals: an unknown name, with
// the known ones; a known one that is not compiled in; one that is compiled in but not usable here, with the reason.
bool mf_device_list_open(mf_device_list *list, const mf_device_entry *known, size_t n_known, const char *names,
                         const mf_device_options *options, mf_error *err);

void mf_device_list_close(mf_device_list *list);

#endif
