// A device that has memory and nothing else, for tests of the KV store.
#ifndef TESTS_KV_MEMORY_H
#define TESTS_KV_MEMORY_H

#include <stdlib.h>

#include "device/device.h"

static void *plain_alloc(mf_device *device, size_t bytes) {
    (void)device;
    return calloc(1, bytes ? bytes : 1);
}

static void plain_release(mf_device *device, void *ptr, size_t bytes) {
    (void)device;
    (void)bytes;
    free(ptr);
}

static void in_turn(mf_device *device, int32_t n_pieces, void (*piece)(void *arg, int32_t i), void *arg) {
    (void)device;
    for (int32_t i = 0; i < n_pieces; i++) piece(arg, i);
}

static const mf_device_class memory_class = {
    .name = "memory", .alloc = plain_alloc, .release = plain_release, .share_out = in_turn};
static mf_device memory = {&memory_class};

#endif
