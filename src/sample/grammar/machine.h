// Walks a program over bytes and tokens. A state is a set of items as Earley's parser has them (J. Earley, "An efficient context-free
// parsing algorithm", 1970), each a node that waits for a byte, in a rule that began in an earlier state. States are interned: two that
// behave alike by their structure have one number, so what was found out for one (where a byte leads, which tokens it allows) serves
// wherever it comes up again. A call at a rule's end takes its caller's place, so lists that are right recursive stay small.
#ifndef MF_SAMPLE_GRAMMAR_MACHINE_H
#define MF_SAMPLE_GRAMMAR_MACHINE_H

#include "sample/grammar/constraint.h"
#include "sample/grammar/program.h"

#define MF_STATE_DEAD      0 // nothing goes on from here
#define MF_STATE_NONE      UINT32_MAX
#define MF_STATE_MAX_ITEMS 20000
#define MF_STATE_MAX_WORK  1000000 // moves that are looked at to build one

typedef struct mf_grammar_item {
    uint32_t node;
    uint32_t origin;     // the state in which its rule began; MF_ORIGIN_SELF, MF_ORIGIN_ROOT
    uint32_t completes;  // the rule that is complete with it
    uint32_t need, room; // of a rule that counts: how many are still needed, how many more may come
} mf_grammar_item;

#define MF_ORIGIN_SELF UINT32_MAX
#define MF_ORIGIN_ROOT (UINT32_MAX - 1)

typedef struct mf_grammar_state {
    mf_grammar_item *items; // those that wait for a byte or a token, then those that wait for a rule
    uint32_t n_scan, n_wait;
    uint32_t *next;      // [n_classes] where a byte leads; MF_STATE_NONE: not known yet. NULL: nothing is known
    mf_token_mask *mask; // NULL: not made yet
    uint32_t clipped;    // the state with far bounds taken away (mf_machine_clip); MF_STATE_NONE: not known yet
    uint32_t plain;      // where every plain character leads; MF_STATE_NONE: not known, MF_STATE_MIXED: to several states
    uint32_t users;      // who holds it
    bool final, marked;
} mf_grammar_state;

#define MF_STATE_MIXED (UINT32_MAX - 1)

typedef struct mf_grammar_machine {
    const mf_grammar_program *program;
    mf_array(mf_grammar_state) states; // 0 is the dead one; items NULL: free
    mf_array(uint32_t) unused;         // numbers of free ones
    uint32_t *slots;                   // of the table of states, number; 0: free
    size_t n_slots, n_used;
    size_t bytes, limit; // of states and masks; the limit is kept by mf_machine_collect, four times the limit everywhere
    uint32_t start;
    // the state being built
    mf_array(mf_grammar_item) scan, wait, work;
    struct {
        uint32_t turn, index;
    } * seen; // a table of `visited`; entries of other turns are free
    size_t n_seen;
    uint32_t turn;
    mf_array(mf_grammar_item) visited;
    uint32_t moves;           // looked at for it
    bool final, failed, full; // failed: memory; full: more items or moves than there may be
} mf_grammar_machine;

bool mf_machine_init(mf_grammar_machine *m, const mf_grammar_program *p, size_t limit, mf_error *err);
void mf_machine_free(mf_grammar_machine *m);

// Where a byte leads. MF_STATE_DEAD: nowhere; MF_STATE_NONE with err: memory, too many items.
uint32_t mf_machine_step(mf_grammar_machine *m, uint32_t state, uint8_t byte, mf_error *err);

// Where a token leads that has these bytes (none: it is only itself) and, as itself, this id. One that ends an answer is no "any other
// token".
uint32_t mf_machine_step_token(mf_grammar_machine *m, uint32_t state, mf_str bytes, int32_t token, bool ends, mf_error *err);

// The state as one token of at most `most` bytes sees it: counts further off than that are without bounds.
uint32_t mf_machine_clip(mf_grammar_machine *m, uint32_t state, uint32_t most, mf_error *err);

// Gives up states and masks that nobody holds, where there is more than the limit. Without memory for it, it waits for another time.
void mf_machine_collect(mf_grammar_machine *m);

#endif
