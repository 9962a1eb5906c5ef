#include "text/pretokenizers.h"

// The published expressions, in parts that several share. `\s` means White_Space here: split.c spells it out for PCRE2.
#define CONTRACTION  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINE_BREAKS  "\\s*[\\r\\n]+"
#define OTHER_SPACES "\\s+(?!\\S)|\\s+"
#define SPACES       LINE_BREAKS "|" OTHER_SPACES
#define SYMBOLS      " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define WORD         "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"

// GPT-2's expression, also that of ByteLevel with use_regex.
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" OTHER_SPACES

#define LLAMA3   CONTRACTION "|" WORD "|\\p{N}{1,3}|" SYMBOLS "|" SPACES
#define QWEN2    CONTRACTION "|" WORD "|\\p{N}|" SYMBOLS "|" SPACES
#define UFAKZEKA WORD "|\\p{N}|" SYMBOLS "|" SPACES

// Words of which the capitals come first: GPT-4o and what follows it.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(tail) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail
#define SYMBOLS_SLASH " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define GPT4O         CASED_WORDS(CONTRACTION "?") "|\\p{N}{1,3}|" SYMBOLS_SLASH "|" SPACES

// The same without Han letters, which are words of their own.
#define UPPER_NOT_HAN "(?:(?!\\p{Han})" UPPER ")"
#define LOWER_NOT_HAN "(?:(?!\\p{Han})" LOWER ")"
#define KIMI_K2                                                                            \
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?" UPPER_NOT_HAN "*" LOWER_NOT_HAN "+" CONTRACTION "?" \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER_NOT_HAN "+" LOWER_NOT_HAN "*" CONTRACTION "?|\\p{N}{1,3}|" SYMBOLS "|" SPACES

// DeepSeek V3's: words with marks, and an ASCII symbol that may begin a word.
#define KANA_HAN      "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define SYMBOL_WORD   "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define MARKED_WORD   "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define DEEPSEEK_WORD SYMBOL_WORD "|" MARKED_WORD "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

// DeepSeek LLM's letters: those with case of Unicode's letter blocks, spelled out.
#define CASED_LETTERS                                                                                                  \
    "[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"  \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"     \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"       \
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"                  \
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                  \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}" \
    "\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"                  \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}" \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}" \
    "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}" \
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"                  \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"                \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"        \
    "\\x{1e900}-\\x{1e943}]+"
#define CJK_HANGUL "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

// AFMoE: scripts written without spaces, and Hangul.
#define ASIAN_SCRIPTS                                                                                                \
    "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{f900}-\\x{faff}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}"               \
    "\\x{ff65}-\\x{ff9f}\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{e7f}\\x{e80}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}" \
    "\\x{aa60}-\\x{aa7f}\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}\\x{1100}-\\x{11ff}]+"

// Youtu: Hangul, full-width punctuation, Bopomofo, Han and kana, each in runs of its own.
#define YOUTU_SCRIPTS                                                                                                 \
    "[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}"      \
    "\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|[\\x{4e00}-\\x{9fa5}" \
    "\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"

#define NOT_BLOOM_PUNCTUATION " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

// Jais 2 cuts a run of spaces in parts of 512. Behind such a part the run has no line break (else LINE_BREAKS had matched
// before); to look for one again at each part would be quadratic.
#define IN_A_NEW_RUN "(?<!(?![\\r\\n])\\s)"

#define R(text) \
    { .kind = MF_SPLIT_REGEX, .regex = text }
#define D(rule) \
    { .kind = MF_SPLIT_DIGITS, .digits = rule }

static const mf_pretokenizer table[] = {
    {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum",
               "exaone4"},
     .splits = {R(GPT2)}},
    {.names = {"jina-v1-en", "jina-v2-code", "roberta-bpe", "jais", "trillion", "granite-docling"}, .splits = {R(GPT2)}},
    {.names = {"mpt", "olmo", "modern-bert"}, .splits = {R(GPT2)}, .nfc = true},
    {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
     .splits = {R("\\p{N}"), R(GPT2)}},
    {.names = {"command-r"}, .splits = {R("\\p{N}"), R(GPT2)}, .nfc = true},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
     .splits = {R(LLAMA3)},
     .ignore_merges = true,
     .add_bos = true},
    {.names = {"dbrx", "smaug-bpe"}, .splits = {R(LLAMA3)}},
    {.names = {"chatglm-bpe"}, .splits = {R(LLAMA3)}},
    {.names = {"glm4", "glm5"}, .splits = {R(LLAMA3)}, .ignore_merges = true},
    {.names = {"minicpm5"},
     .splits = {R("\\p{N}{1,3}"), R(CONTRACTION "|" WORD "|\\p{N}+|" SYMBOLS "|" SPACES)},
     .ignore_merges = true},
    {.names = {"jais-2"},
     .splits = {R(CONTRACTION "|" WORD "|\\p{N}{1,3}|" SYMBOLS "|" IN_A_NEW_RUN LINE_BREAKS
                              "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)"
                              "|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}")}},
    {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"}, .splits = {R(QWEN2)}, .nfc = true},
    {.names = {"stablelm2", "hunyuan", "solar-open", "grok-2"}, .splits = {R(QWEN2)}},
    {.names = {"qwen35"},
     .splits = {R(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES)},
     .nfc = true},
    {.names = {"ufakzeka"}, .splits = {R(UFAKZEKA)}},
    {.names = {"laguna"}, .splits = {R("[^\\n]+|[\\n]+"), R(QWEN2)}},
    {.names = {"seed-coder"}, .splits = {R(CONTRACTION "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES)}},
    {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
     .splits = {R("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
                  "|\\s*[\\r\\n]|" OTHER_SPACES)}},
    {.names = {"exaone-moe"},
     .splits = {R(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}"
                              "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" OTHER_SPACES)}},
    {.names = {"deepseek-llm"},
     .splits = {R("[\\r\\n]"), R("\\s?" CASED_LETTERS),
                R("\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+"), R("\\s+$"),
                R(CJK_HANGUL), R("\\p{N}+")}},
    {.names = {"deepseek-coder"}, .splits = {R("[\\r\\n]"), R("\\s?\\p{L}+"), R("\\s?\\p{P}+"), R(CJK_HANGUL), R("\\p{N}")}},
    {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     .splits = {R("\\p{N}{1,3}"), R(KANA_HAN), R(DEEPSEEK_WORD)}},
    {.names = {"spark2_5"},
     .splits = {R("\\p{N}{1,3}"), R(KANA_HAN), R(SYMBOL_WORD "|" MARKED_WORD "| ?[\\p{P}\\p{S}]+|[\\r\\n]|" OTHER_SPACES),
                R("\\p{N}")}},
    {.names = {"afmoe"}, .splits = {D(MF_DIGITS_ANY), R(ASIAN_SCRIPTS), R(DEEPSEEK_WORD)}},
    {.names = {"youtu"},
     .splits = {R(YOUTU_SCRIPTS), R(CASED_WORDS(CONTRACTION "?") "|\\p{N}|" SYMBOLS_SLASH "|" SPACES)},
     .ignore_merges = true},
    {.names = {"falcon"}, .splits = {R("[\\p{P}$+<=>^~|`]+"), R(GPT2), R("[0-9][0-9][0-9]")}},
    {.names = {"default"}, .splits = {R("[\\p{P}$+<=>^~|]+"), R(GPT2), R("\\p{N}+"), R("[0-9][0-9][0-9]")}},
    {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .splits = {R(NOT_BLOOM_PUNCTUATION)}},
    {.names = {"viking"}, .splits = {R(NOT_BLOOM_PUNCTUATION), R("\\p{N}")}},
    {.names = {"tekken"},
     .splits = {R(CASED_WORDS("") "|\\p{N}|" SYMBOLS_SLASH "|" SPACES)},
     .ignore_merges = true,
     .add_bos = true},
    {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .splits = {R(GPT4O)}},
    {.names = {"granite-embed-multi-97m"}, .splits = {R(GPT4O)}, .ignore_merges = true},
    {.names = {"tiny_aya", "cohere2moe"}, .splits = {D(MF_DIGITS_BOUNDARY), R(GPT4O)}},
    {.names = {"superbpe"}, .splits = {R("\\p{N}+"), D(MF_DIGITS_INSIDE)}},
    {.names = {"kimi-k2"}, .splits = {R(KIMI_K2)}},
    {.names = {"chameleon"},
     .splits = {R("<sentinel:[0-9]+>"), R("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"), R("([\\t\\n]|    |  )"), R("\\p{N}"),
                R("[\\p{P}!-/:-@\\[-`{-~]"), R(GPT2)},
     .add_bos = true},
};

const mf_pretokenizer *mf_pretokenizer_find(mf_str name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (size_t k = 0; table[i].names[k]; k++)
            if (mf_str_is(name, table[i].names[k])) return &table[i];
    return NULL;
}

void mf_pretokenizer_list(mf_buf *out) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (i) mf_buf_char(out, ' ');
        mf_buf_text(out, table[i].names[0]);
    }
}
