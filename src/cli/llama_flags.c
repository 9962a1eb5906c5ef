// Flags of llama.cpp's programs that people paste: what they mean here, or one line of advice. Those with the same meaning
// are names in the table of flags.
#include "cli/flags.h"

#define ACCEPTED false
#define REFUSED  true

static const char cpu_only[] = "this version computes on the CPU alone";
static const char no_download[] = "downloading is not in this version; give the path of a GGUF file";
static const char as_template[] =
    "thinking is what the model's template makes of it; --chat-template-kwargs sets its variables";
static const char own_turns[] = "turns are marked by the chat template";
static const char no_draft[] = "speculative decoding is not in this version";
static const char no_lora[] = "adapters are not in this version";
static const char own_rope[] = "rope scaling is the file's own";
static const char own_order[] = "the order of the samplers is fixed";
static const char no_pictures[] = "pictures and sound are not in this version";
static const char packed[] = "weights are repacked at load and the mapped pages given back";

static const mf_llama_flag flags[] = {
    {"-ngl --gpu-layers --n-gpu-layers --gpu", 1, ACCEPTED, cpu_only},
    {"-sm --split-mode -ts --tensor-split -mg --main-gpu -ot --override-tensor -ncmoe --n-cpu-moe -ncffn --n-cpu-ffn -fitt "
     "--fit-target -fitc --fit-ctx --rpc",
     1, ACCEPTED, cpu_only},
    {"-nkvo --no-kv-offload -kvo --kv-offload --op-offload --no-op-offload -cmoe --cpu-moe --no-host", 0, ACCEPTED,
     cpu_only},
    {"-fit --fit", -1, ACCEPTED, "what does not fit into memory is refused with what would"},
    {"-dev --device", 1, REFUSED, "devices are chosen by --backend NAME"},
    {"--list-devices", 0, REFUSED, "minfer doctor lists what this machine has"},
    {"-fa --flash-attn", -1, ACCEPTED, "attention always goes block by block, without a matrix of scores"},
    {"-ub --ubatch-size", 1, ACCEPTED, "a step has at most --batch-size rows"},
    {"-tb --threads-batch", 1, ACCEPTED, "prompt and generation use the same --threads"},
    {"-lm --load-mode -lzm --lazy-mode", 1, ACCEPTED, packed},
    {"-nr --no-repack --repack --no-mmap --mmap -dio --direct-io", 0, ACCEPTED, packed},
    {"--mlock", 0, ACCEPTED, "memory is not locked"},
    {"--no-warmup", 0, ACCEPTED, NULL},
    {"--warmup", 0, ACCEPTED, NULL},
    {"--numa", 1, ACCEPTED, "threads are not bound to memory nodes"},
    {"--prio --prio-batch --poll --poll-batch -C --cpu-mask -Cr --cpu-range --cpu-strict -Cb --cpu-mask-batch -Crb "
     "--cpu-range-batch "
     "--cpu-strict-batch",
     1, ACCEPTED, "use taskset, nice and --threads"},
    {"-np --parallel", 1, ACCEPTED, "one sequence is generated; minfer bench has --parallel"},
    {"-cb --cont-batching -nocb --no-cont-batching", 0, ACCEPTED, NULL},
    {"-kvu --kv-unified --swa-full --no-perf --perf --no-display-prompt --display-prompt", 0, ACCEPTED, NULL},
    {"--simple-io --log-disable --log-prefix --log-timestamps --no-log-prefix --no-log-timestamps --log-verbose --log-jsonl "
     "--no-log-jsonl "
     "--offline -co",
     0, ACCEPTED, NULL},
    {"--log-colors", -1, ACCEPTED, NULL},
    {"--log-file", 1, ACCEPTED, "the log goes to standard error"},
    {"-ptc --print-token-count", 1, ACCEPTED, "the counts are printed at the end"},
    {"-bs --backend-sampling", 0, ACCEPTED, NULL},
    {"-cl --cache-list", 0, REFUSED, "minfer list shows the models in the cache"},
    {"--completion-bash", 0, REFUSED, "minfer completion bash prints the script"},
    {"-sysf --system-prompt-file", 1, REFUSED, "--system TEXT has the system message: --system \"$(cat FILE)\""},
    {"-lv --log-verbosity --verbosity", 1, ACCEPTED, "--verbose is what there is"},
    {"--no-jinja", 0, ACCEPTED, NULL},
    {"-if --interactive-first", 0, REFUSED, "minfer chat waits for the first question"},
    {"--jinja", 0, ACCEPTED, NULL}, // templates always are
    {"--reasoning-format --reasoning-budget", 1, REFUSED, as_template},
    {"-rea --reasoning --reasoning-effort --reasoning-budget-message", 1, REFUSED, as_template},
    {"--reasoning-preserve --no-reasoning-preserve --skip-chat-parsing --no-skip-chat-parsing", 0, REFUSED, as_template},
    {"-e --escape --no-escape", 0, ACCEPTED, "escapes such as \\n in a prompt are not replaced; the shell's $'…' does that"},
    {"--grp-attn-n --grp-attn-w -gan -gaw", 1, REFUSED, "self-extension is not in this version"},
    {"--context-shift", 0, ACCEPTED, "minfer chat does so"},
    // Flags of minfer chat, where there is no conversation.
    {"-st --single-turn", 0, ACCEPTED, "one prompt has one answer"},
    {"--no-context-shift", 0, ACCEPTED, "one answer ends where the context is full"},
    {"--keep", 1, ACCEPTED, "nothing leaves the context of one answer"},
    {"-dt --defrag-thold --cache-reuse --ctx-checkpoints -cram --cache-ram", 1, ACCEPTED, NULL},
    {"--kv-cache-dir --slots-file --kv-cache-size", 1, REFUSED, "a cache on disk is not in this version"},
    {"--split-max-size --split-max-tensors", 1, REFUSED, "splitting files is not in this version"},
    {"--prompt-cache --slot-save-path", 1, REFUSED, "saved prompts are not in this version"},
    {"--prompt-cache-all --prompt-cache-ro", 0, REFUSED, "saved prompts are not in this version"},
    {"-hf -hfr --hf-repo -hff --hf-file -mu --model-url -dr --docker-repo -hft --hf-token", 1, REFUSED, no_download},
    {"--adaptive-target --adaptive-decay", 1, REFUSED,
     "adaptive-p is not in this version; --mirostat 2 and --typical come near"},
    {"--samplers --sampling-seq --sampler-seq", 1, REFUSED, own_order},
    {"--dynatemp-range --dynatemp-exp", 1, REFUSED, "the temperature is constant"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor "
     "--yarn-beta-slow --yarn-beta-fast",
     1, REFUSED, own_rope},
    {"--lora --lora-scaled --control-vector --control-vector-scaled --control-vector-layer-range", 1, REFUSED, no_lora},
    {"-md --model-draft --draft --draft-max --draft-min --draft-n -ngld -td -cd -ctkd --cache-type-k-draft -ctvd "
     "--cache-type-v-draft --spec-draft-type-k --spec-draft-type-v",
     1, REFUSED, no_draft},
    {"--mmproj --mmproj-url --image --audio", 1, REFUSED, no_pictures},
    {"--override-kv", 1, REFUSED, "the file's metadata is taken as it is"},
    {"--check-tensors", 0, ACCEPTED,
     "every weight is checked while it is loaded, the rows of an embedding as they are used"},
    {"-bf --binary-file", 1, REFUSED, "a prompt's bytes are read by --file FILE"},
    {"--in-prefix --in-suffix", 1, REFUSED, own_turns},
    {"--in-prefix-bos --special -sp --verbose-prompt", 0, ACCEPTED, "minfer tokenize shows a prompt's tokens"},
};

const mf_llama_flag *mf_llama_flag_find(mf_str name) {
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (mf_names_have(flags[i].names, name)) return &flags[i];
    return NULL;
}
