// The CPU device: kernels by instruction set over a thread pool.
#ifndef MF_BACKEND_CPU_CPU_H
#define MF_BACKEND_CPU_CPU_H

#include "device/device.h"

extern const mf_device_class mf_cpu_device_class;

#endif
