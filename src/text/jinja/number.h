// Python's numbers: integers of any size, floats, their text.
#ifndef MF_TEXT_JINJA_NUMBER_H
#define MF_TEXT_JINJA_NUMBER_H

#include "text/jinja/value.h"

// An integer beyond int64: sign and magnitude, limbs of nine decimal digits, the lowest first, no leading zero limb.
typedef struct mf_jbig {
    bool negative;
    uint32_t n;
    uint32_t limbs[];
} mf_jbig;

#define MF_JBIG_BASE 1000000000u

static inline bool mf_jbig_negative(const mf_jbig *big) { return big->negative; }

typedef enum mf_jarith_op {
    MF_J_ADD,
    MF_J_SUB,
    MF_J_MUL,
    MF_J_DIV,
    MF_J_FLOORDIV,
    MF_J_MOD,
    MF_J_POW,
} mf_jarith_op;

// Both are numbers. False with Python's reason: division by zero, overflow, a complex result, an integer past 4300 digits.
bool mf_jarith(mf_jrun *run, mf_jarith_op op, mf_jval a, mf_jval b, mf_jval *out);
bool mf_jnegate(mf_jrun *run, mf_jval a, mf_jval *out);

// The exact order of two numbers; false when one is NaN.
bool mf_jcompare_numbers(mf_jval a, mf_jval b, int *order);

// A number as double: integers are rounded to the nearest, those past the range are refused.
bool mf_jto_real(mf_jrun *run, mf_jval v, double *out);

// int(float): towards zero. NaN and infinity are refused.
bool mf_jfrom_real(mf_jrun *run, double value, mf_jval *out);

// What int(text, base) and float(text) take: *ok tells whether it is a number. False when memory or work is out.
bool mf_jparse_int(mf_jrun *run, mf_str text, int base, mf_jval *out, bool *ok);
bool mf_jparse_real(mf_jrun *run, mf_str text, double *out, bool *ok);

// An integer out of decimal digits. False past 4300 of them.
bool mf_jint_from_digits(mf_jrun *run, bool negative, mf_str digits, mf_jval *out);

// The decimal text of an integer (MF_J_BOOL as 0 or 1), in the arena.
bool mf_jint_text(mf_jrun *run, mf_jval v, mf_str *out);

// repr(float): the shortest digits that read back, as CPython lays them out.
void mf_jreal_text(double value, char out[40]);

// The shortest digits of a finite value > 0, and the power of ten of the first one. Returns their number (1-17).
int mf_jreal_digits(double value, char digits[32], int *exponent);

#endif
