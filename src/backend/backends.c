#include "backend/backends.h"

#include "backend/cpu/cpu.h"

static const mf_device_entry entries[] = {
    {"cuda", NULL},
    {"vulkan", NULL},
    {"metal", NULL},
    {"cpu", &mf_cpu_device_class},
};

const mf_device_entry *mf_backends(size_t *n) {
    *n = sizeof entries / sizeof entries[0];
    return entries;
}
