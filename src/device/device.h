// The one seam between the engine and what computes: buffers, supports(), weights, and running a span of nodes.
#ifndef MF_DEVICE_DEVICE_H
#define MF_DEVICE_DEVICE_H

#include "device/op.h"

typedef struct mf_device mf_device;

// What an operation would work on, for supports().
typedef struct mf_op_types {
    mf_format src; // format of the first source
    mf_format dst;
    mf_type weight; // where has_weight
    bool has_weight;
    mf_type kv; // KV_STORE, ATTENTION
} mf_op_types;

typedef struct mf_device_limits { // for the benchmark's percentages; measured when asked for, a fraction of a second
    double read_bytes_per_second; // memory read bandwidth, all threads
    double int8_macs_per_second;  // int8 multiply-adds in registers, all threads, by this kernel row's instructions
} mf_device_limits;

typedef struct mf_device_options {
    int n_threads;       // 0: mf_cpu_default_threads()
    const char *cpu_row; // NULL or "": the best
} mf_device_options;

// What each kind of device implements.
typedef struct mf_device_class {
    const char *name; // "cpu"

    // NULL with err when it is not usable here, with the reason.
    mf_device *(*open)(const mf_device_options *options, mf_error *err);
    void (*close)(mf_device *device);

    const char *(*describe)(const mf_device *device); // "cpu (avx2, 2 threads)"
    int (*n_threads)(const mf_device *device);

    // Whether it runs this operation on these types. Decided before anything runs.
    bool (*supports)(const mf_device *device, mf_op op, const mf_op_types *types);

    // Bytes of one row of n values in a format.
    size_t (*row_bytes)(const mf_device *device, mf_format format, int64_t n);

    // One row of n values in an opaque format as floats, for traces and tests. NULL: rows stay opaque.
    void (*decode_row)(const mf_device *device, mf_format format, const void *row, int64_t n, float *out);

    // Storage for values and caches, zeroed, aligned to 64. NULL when out of memory.
    void *(*alloc)(mf_device *device, size_t bytes);
    void (*release)(mf_device *device, void *ptr, size_t bytes);

    // Extra bytes weight_prepare will allocate for a weight (0: it is used where it is mapped).
    size_t (*weight_bytes)(const mf_device *device, const mf_weight *weight);

    // Makes weight->prepared from weight->file. *mapped_in_use tells whether the file's bytes are still read afterwards. Refused, with
    // its place: a number that is not finite, but in a matrix that is only gathered, whose rows are checked as they are used.
    bool (*weight_prepare)(mf_device *device, mf_weight *weight, bool *mapped_in_use, mf_error *err);
    void (*weight_release)(mf_device *device, mf_weight *weight);

    // Bytes of working memory the device keeps for steps of this program, and the reservation itself (before the first run; a
    // larger one replaces a smaller, and programs share it). Any thread may call this and run: they take turns.
    size_t (*scratch_bytes)(const mf_device *device, const mf_program *program);
    bool (*reserve)(mf_device *device, size_t bytes, mf_error *err);

    // Runs nodes [first, first + count). Allocates nothing. A row that turns non-finite is reported in step->row_error, not as
    // a failure; false with err is an interrupt (values and cells of the step are then what came of it), or a broken invariant, with
    // the values.
    bool (*run)(mf_device *device, const mf_program *program, int32_t first, int32_t count, const mf_step *step,
                mf_error *err);

    // Runs piece(arg, i) for every i in [0, n_pieces), on all workers and in any order, and returns when all have returned. For work on
    // its storage that is no step.
    void (*share_out)(mf_device *device, int32_t n_pieces, void (*piece)(void *arg, int32_t i), void *arg);

    bool (*measure)(mf_device *device, mf_device_limits *out, mf_error *err);
} mf_device_class;

struct mf_device {
    const mf_device_class *class;
};

#endif
