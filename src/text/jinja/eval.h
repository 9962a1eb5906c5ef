// Inside the evaluator: variables, expressions and statements.
#ifndef MF_TEXT_JINJA_EVAL_H
#define MF_TEXT_JINJA_EVAL_H

#include "text/jinja/ast.h"
#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

// The variables of one call of a function.
typedef struct mf_jvars {
    struct mf_jvars *parent; // of the function around it
    mf_jval *slots;
} mf_jvars;

typedef enum mf_jflow {
    MF_FLOW_ON,
    MF_FLOW_BREAK,
    MF_FLOW_CONTINUE,
    MF_FLOW_FAILED,
} mf_jflow;

mf_jvars *mf_jvars_new(mf_jrun *run, const mf_jfunc *func, mf_jvars *parent);
void mf_jscope_enter(mf_jrun *run, const mf_jscope *scope, mf_jvars *vars);
mf_jval *mf_jslot_of(mf_jvars *vars, mf_jslot slot);

// The value of an expression. False with the error set, which then says where.
bool mf_jeval(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out);

// Assigns to a target; `test` takes the slots of a loop's test.
bool mf_jassign(mf_jrun *run, const mf_jnode *target, mf_jval value, mf_jvars *vars, bool test);

// Runs statements, appending what they print.
mf_jflow mf_jexec(mf_jrun *run, mf_jnodes body, mf_jvars *vars, mf_jbuild *out);

bool mf_jmacro_call(mf_jrun *run, const mf_jmacro *macro, const mf_jargs *args, mf_jval *out);
bool mf_jloop_call(mf_jrun *run, mf_jloop *loop, const mf_jargs *args, mf_jval *out);

// Says where the error came from, once.
bool mf_jlocate(mf_jrun *run, const mf_jnode *node);

// The arguments of a call, evaluated, with `first` before them unless it is MF_J_MISSING.
bool mf_jeval_args(mf_jrun *run, const mf_jnode *call, mf_jval first, mf_jvars *vars, mf_jargs *args);
bool mf_jadd_keyword(mf_jrun *run, mf_jargs *args, mf_jval name, mf_jval value);

#endif
