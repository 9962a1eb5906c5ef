// Arithmetic of integers beyond int64. Operands are any integers as values; results are normalized: MF_J_INT where they fit.
#ifndef MF_TEXT_JINJA_BIGINT_H
#define MF_TEXT_JINJA_BIGINT_H

#include "text/jinja/number.h"

bool mf_jbig_arith(mf_jrun *run, mf_jarith_op op, mf_jval a, mf_jval b, mf_jval *out); // not DIV
bool mf_jbig_divide(mf_jrun *run, mf_jval a, mf_jval b, double *out);                  // a / b, rounded once; b is not 0
int mf_jbig_compare(mf_jval a, mf_jval b);

#endif
