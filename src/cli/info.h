// Metadata as text and JSON.
#ifndef MF_CLI_INFO_H
#define MF_CLI_INFO_H

#include "base/json.h"
#include "gguf/gguf.h"

// A value on one line: strings cut, arrays as their first few and the count.
void mf_info_value_text(const mf_gguf_value *value, mf_buf *out);

// Scalars as they are; an array as {"item":…,"count":…,"first":[…]}; a string whole.
void mf_info_value_json(const mf_gguf_value *value, mf_json_writer *w);

// Parameters in all, and the name of the type that most of the tensors' bytes have ("Q4_1").
uint64_t mf_info_parameters(const mf_gguf *file);
const char *mf_info_main_type(const mf_gguf *file);

// Outside the layers, or of the first layer: enough to see how the model is built.
bool mf_info_is_key_tensor(const mf_gguf_tensor *tensor);

// A tensor's shape, innermost first: "64 x 291".
void mf_info_shape_text(const mf_gguf_tensor *tensor, mf_buf *out);

// All metadata and the key tensors in the log.
void mf_info_log_metadata(const mf_gguf *file);

#endif
