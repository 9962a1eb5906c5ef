// Which devices this program knows, in priority order.
#ifndef MF_BACKEND_BACKENDS_H
#define MF_BACKEND_BACKENDS_H

#include "device/registry.h"

const mf_device_entry *mf_backends(size_t *n);

#endif
