#include "base/map.h"

#include "base/mem.h"
#include "base/random.h"

#include <stdlib.h>

struct mf_map_slot {
    mf_str key;
    uint32_t hash; // 0: the slot is free
    uint32_t value;
};

uint64_t mf_hash(const void *bytes, size_t len, uint64_t seed) {
    // Each step is a bijection of the state for a given word: multiply, then fold the high half down.
    const uint64_t k = 0x9E3779B97F4A7C15; // 2^64 / golden ratio, odd
    const uint8_t *p = bytes;
    uint64_t h = (seed ^ k) + len * k;
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * k;
        h ^= h >> 29;
        h *= k;
        h ^= h >> 32;
    }
    uint64_t word = 0;
    if (left) memcpy(&word, p, left);
    h = (h ^ word) * k;
    h ^= h >> 29;
    h *= k;
    h ^= h >> 32;
    h *= k;
    return h ^ h >> 32;
}

mf_hash_key mf_hash_key_new(void) { return (mf_hash_key){{mf_random_seed(), mf_random_seed()}}; }

static uint32_t slot_hash(const mf_map *map, mf_str key) {
    uint32_t h = (uint32_t)mf_hash_keyed(key.ptr, key.len, map->key);
    return h ? h : 1;
}

// The slot that holds key, or the free one where it belongs. cap > 0, and at least one slot is free.
static mf_map_slot *find(const mf_map *map, mf_str key, uint32_t hash) {
    for (size_t i = hash & (map->cap - 1);; i = (i + 1) & (map->cap - 1)) {
        mf_map_slot *slot = &map->slots[i];
        if (slot->hash == 0 || (slot->hash == hash && mf_str_eq(slot->key, key))) return slot;
    }
}

bool mf_map_reserve(mf_map *map, size_t n) {
    // At most two thirds full; at most 2^31 slots, because the hash has 32 bits.
    size_t cap = map->cap ? map->cap : 16;
    if (n > ((size_t)1 << 31) / 3 * 2) return false;
    while (cap / 3 * 2 < n) cap *= 2;
    if (cap == map->cap) return true;
    if (map->cap == 0) map->key = mf_hash_key_new();
    mf_map bigger = {mf_alloc(cap, sizeof(mf_map_slot)), map->len, cap, map->key};
    if (!bigger.slots) return false;
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].hash) *find(&bigger, map->slots[i].key, map->slots[i].hash) = map->slots[i];
    free(map->slots);
    *map = bigger;
    return true;
}

bool mf_map_set(mf_map *map, mf_str key, uint32_t value, bool *existed) {
    mf_map_slot *slot = map->len ? find(map, key, slot_hash(map, key)) : NULL;
    if (slot && slot->hash) {
        slot->value = value;
        if (existed) *existed = true;
        return true;
    }
    if (!mf_map_reserve(map, map->len + 1)) return false;
    uint32_t hash = slot_hash(map, key);
    *find(map, key, hash) = (mf_map_slot){key, hash, value};
    map->len++;
    if (existed) *existed = false;
    return true;
}

bool mf_map_get(const mf_map *map, mf_str key, uint32_t *value) {
    if (map->len == 0) return false;
    const mf_map_slot *slot = find(map, key, slot_hash(map, key));
    if (slot->hash == 0) return false;
    *value = slot->value;
    return true;
}

void mf_map_free(mf_map *map) {
    free(map->slots);
    *map = (mf_map){0};
}
