// Memory for matrices. They share regions of whole huge pages: most matrices of a small model are smaller than one such page and would
// lie in pages of 4 kB, whose translations memory has to be asked for again and again.
#include <stdlib.h>

#include "backend/cpu/device.h"
#include "base/mem.h"

#define REGION ((size_t)32 << 20)
#define LINE   64

struct cpu_region {
    cpu_region *next;
    char *base;
    size_t bytes, used;
    size_t live; // matrices in it
};

static cpu_region *add_region(cpu_device *d, size_t bytes) {
    cpu_region *r = mf_alloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (cpu_region){.base = mf_cpu_alloc(&d->device, bytes), .bytes = bytes, .next = d->regions};
    if (!r->base) {
        free(r);
        return NULL;
    }
    d->regions = r;
    return r;
}

void *mf_cpu_store_alloc(cpu_device *d, size_t bytes) {
    const size_t need = mf_align_up(bytes, LINE);
    cpu_region *r = d->regions;
    while (r && r->bytes - r->used < need) r = r->next;
    if (!r) r = add_region(d, need > REGION ? need : REGION);
    if (!r) return NULL;
    void *p = r->base + r->used;
    r->used += need;
    r->live++;
    return p;
}

void mf_cpu_store_release(cpu_device *d, void *p) {
    cpu_region **at = &d->regions;
    while (*at && !((char *)p >= (*at)->base && (char *)p < (*at)->base + (*at)->bytes)) at = &(*at)->next;
    cpu_region *r = *at;
    if (!r || --r->live > 0) return;
    *at = r->next;
    mf_cpu_release(&d->device, r->base, r->bytes);
    free(r);
}
