// The GGUF reader on arbitrary bytes: what opens is walked through every accessor and each tensor's first block is decoded.
#include "../support/ggufwalk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(data, size, &err);
    if (file)
        ggufwalk(file);
    else if (err.code == MF_OK || err.text[0] == 0)
        abort(); // a refusal without its reason
    mf_gguf_close(file);
    return 0;
}
