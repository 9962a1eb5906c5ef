// The tokens of a template, with jinja2's rules for white space (trim_blocks, lstrip_blocks, - and +).
#ifndef MF_TEXT_JINJA_LEXER_H
#define MF_TEXT_JINJA_LEXER_H

#include "text/jinja/ast.h"

typedef enum mf_jtoken_kind {
    MF_T_EOF,
    MF_T_DATA,
    MF_T_BLOCK_BEGIN,
    MF_T_BLOCK_END,
    MF_T_VARIABLE_BEGIN,
    MF_T_VARIABLE_END,
    MF_T_NAME,
    MF_T_STRING,
    MF_T_INTEGER,
    MF_T_FLOAT,
    MF_T_OPERATOR,
} mf_jtoken_kind;

// The operators of two characters are their own letters; those of one are that character.
enum {
    MF_T_FLOORDIV = 'f',
    MF_T_POW = 'p',
    MF_T_EQ = 'e',
    MF_T_NE = 'n',
    MF_T_GE = 'g',
    MF_T_LE = 'l',
};

typedef struct mf_jtoken {
    mf_jtoken_kind kind;
    char op;           // OPERATOR
    uint32_t line;     // 1-based
    uint32_t from, to; // bytes of the source
    mf_str text;       // DATA: what is printed; NAME; STRING: unescaped; INTEGER, FLOAT: without underscores
} mf_jtoken;

typedef struct mf_jlexer {
    mf_jinja *t;
    mf_error *err;
    uint32_t at, line;
    enum {
        MF_LEX_ROOT,
        MF_LEX_BLOCK,
        MF_LEX_VARIABLE,
    } state;
    bool line_starting;
    bool begin_pending;  // the tag at `at` follows the data that was given out
    mf_array(char) open; // brackets, the closing ones
} mf_jlexer;

// The next token; MF_T_EOF for ever at the end. False with the error set.
bool mf_jlex(mf_jlexer *l, mf_jtoken *token);

#endif
