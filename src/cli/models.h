// The model cache: what lies in ${XDG_CACHE_HOME:-~/.cache}/minfer/models, and the names by which its files are meant.
#ifndef MF_CLI_MODELS_H
#define MF_CLI_MODELS_H

#include "base/error.h"
#include "cli/options.h"

// A model file: of a split one its first part.
typedef struct mf_cached_model {
    char *path;
    const char *file; // its last part, into path
    char *name;       // the path below the folder, without .gguf and the number of the part
    int n_parts;      // of a split file; else 0
} mf_cached_model;

typedef struct mf_cached_models {
    char *dir;                      // "": no home, so no cache
    mf_array(mf_cached_model) list; // by name
} mf_cached_models;

// What the cache has; a folder that is not there is empty. False with err: memory, a folder that can't be read, more than 10,000 entries. Freed in any
// case.
bool mf_models_scan(mf_cached_models *models, mf_error *err);
void mf_models_free(mf_cached_models *models);

// The model that a word means: the one whose name or file has it as its whole, else the only one whose name contains it, in any case.
// NULL with err: none (MF_ERR_ARGUMENT), or several (MF_ERR_LIMIT, with their names).
const mf_cached_model *mf_models_find(const mf_cached_models *models, const char *word, mf_error *err);

// The model with exactly this name, or whose path below the folder is this one. NULL with err: none, or several.
const mf_cached_model *mf_models_named(const mf_cached_models *models, const char *name, mf_error *err);

// Removes a model's file, or all parts of a split one. Only what lies in the folder itself is touched: nothing behind a link to another
// folder, and of a link to a file the link. False with err.
bool mf_models_remove(const mf_cached_models *models, const mf_cached_model *model, mf_error *err);

bool mf_models_has(const char *word); // one or several

// Makes o->model a path: what is one stays, a cached name becomes its file; without any, the only cached model is taken where `choose` is set. Names that
// would be downloaded and ambiguous or unknown ones are refused.
bool mf_models_resolve(mf_options *o, bool choose, mf_error *err);

// The refusal where no model is given: how to give one. Returns false.
bool mf_models_advise(mf_error *err);

#endif
