// A hash map from byte strings to uint32 values. Keys are borrowed: they must outlive the map. Open addressing under a
// secret key of each map's own, so that keys out of a hostile file can't be made to collide; there is no iteration whose order could
// reach an output.
#ifndef MF_BASE_MAP_H
#define MF_BASE_MAP_H

#include "base/siphash.h"
#include "base/text.h"

// A hash that is the same everywhere, for what is compared or kept (64-bit, not cryptographic). No table is built over it.
uint64_t mf_hash(const void *bytes, size_t len, uint64_t seed);

typedef struct mf_map_slot mf_map_slot;

typedef struct mf_map {
    mf_map_slot *slots;
    size_t len, cap;
    mf_hash_key key;
} mf_map;

// Sets key -> value. *existed (may be NULL) tells whether the key was there (its value is then replaced). False when
// memory is out.
bool mf_map_set(mf_map *map, mf_str key, uint32_t value, bool *existed);

// False when the key is absent.
bool mf_map_get(const mf_map *map, mf_str key, uint32_t *value);

// Makes room for n keys without a rehash; false when memory is out.
bool mf_map_reserve(mf_map *map, size_t n);

void mf_map_free(mf_map *map);

#endif
