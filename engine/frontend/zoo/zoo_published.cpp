#include "engine/frontend/zoo/zoo_published.h"

#include <algorithm>
#include <cassert>

namespace planloom {

namespace {

struct Published {
    const char *name;
    const char *family;
    const char *meaning; ///< What it is, and where its sizes are from.
    std::vector<std::pair<const char *, double>> sizes;
};

std::vector<Published> denseModels()
{
    return {{"gpt-3-175b", "gpt", "GPT-3 (arXiv:2005.14165, table 2.1)",
                {{"layers", 96}, {"hidden", 12288}, {"heads", 96}, {"seq", 2048}, {"batch", 1}}},
        {"llama-2-7b", "llama", "LLaMA 2 7B (arXiv:2307.09288)",
            {{"layers", 32}, {"hidden", 4096}, {"heads", 32}, {"ffn", 11008}, {"seq", 4096}}},
        {"llama-2-13b", "llama", "LLaMA 2 13B (arXiv:2307.09288)",
            {{"layers", 40}, {"hidden", 5120}, {"heads", 40}, {"ffn", 13824}, {"seq", 4096}}},
        {"llama-2-70b", "llama", "LLaMA 2 70B (arXiv:2307.09288)",
            {{"layers", 80}, {"hidden", 8192}, {"heads", 64}, {"kv_heads", 8}, {"ffn", 28672},
                {"seq", 4096}}},
        {"llama-3-8b", "llama", "LLaMA 3 8B (arXiv:2407.21783, table 3)",
            {{"layers", 32}, {"hidden", 4096}, {"heads", 32}, {"kv_heads", 8}, {"ffn", 14336}, {"seq", 8192},
                {"vocab", 128256}, {"rope_base", 500000}}},
        {"llama-3-70b", "llama", "LLaMA 3 70B (arXiv:2407.21783, table 3)",
            {{"layers", 80}, {"hidden", 8192}, {"heads", 64}, {"kv_heads", 8}, {"ffn", 28672}, {"seq", 8192},
                {"vocab", 128256}, {"rope_base", 500000}}},
        {"llama-3-405b", "llama", "LLaMA 3 405B (arXiv:2407.21783, table 3)",
            {{"layers", 126}, {"hidden", 16384}, {"heads", 128}, {"kv_heads", 8}, {"ffn", 53248},
                {"seq", 8192}, {"vocab", 128256}, {"rope_base", 500000}}},
        {"nemotron-4-340b", "llama", "Nemotron-4 340B, all of a head turning (arXiv:2406.11704)",
            {{"layers", 96}, {"hidden", 18432}, {"heads", 96}, {"kv_heads", 8}, {"ffn", 73728}, {"seq", 4096},
                {"vocab", 256000}, {"gated", 0}}}};
}

std::vector<Published> mixtures()
{
    return {{"mixtral-8x7b", "llama", "Mixtral 8x7B (arXiv:2401.04088, table 1)",
                {{"layers", 32}, {"hidden", 4096}, {"heads", 32}, {"kv_heads", 8}, {"ffn", 14336},
                    {"seq", 4096}, {"experts", 8}, {"top_k", 2}, {"rope_base", 1000000}}},
        {"mixtral-8x22b", "llama", "Mixtral 8x22B (its published configuration)",
            {{"layers", 56}, {"hidden", 6144}, {"heads", 48}, {"kv_heads", 8}, {"ffn", 16384}, {"seq", 4096},
                {"vocab", 32768}, {"experts", 8}, {"top_k", 2}, {"rope_base", 1000000}}},
        {"qwen3-30b-a3b", "llama", "Qwen3 30B-A3B (arXiv:2505.09388, table 2, and its configuration)",
            {{"layers", 48}, {"hidden", 2048}, {"heads", 32}, {"kv_heads", 4}, {"head_dim", 128},
                {"ffn", 768}, {"seq", 4096}, {"vocab", 151936}, {"experts", 128}, {"top_k", 8},
                {"qk_norm", 2}, {"rope_base", 1000000}}},
        {"qwen3-235b-a22b", "llama", "Qwen3 235B-A22B (arXiv:2505.09388, table 2, and its configuration)",
            {{"layers", 94}, {"hidden", 4096}, {"heads", 64}, {"kv_heads", 4}, {"head_dim", 128},
                {"ffn", 1536}, {"seq", 4096}, {"vocab", 151936}, {"experts", 128}, {"top_k", 8},
                {"qk_norm", 2}, {"rope_base", 1000000}}},
        {"gpt-oss-20b", "llama", "gpt-oss-20b without biases and attention sinks (arXiv:2508.10925)",
            {{"layers", 24}, {"hidden", 2880}, {"heads", 64}, {"kv_heads", 8}, {"head_dim", 64},
                {"ffn", 2880}, {"seq", 4096}, {"vocab", 201088}, {"experts", 32}, {"top_k", 4},
                {"window", 128}, {"full_every", 2}, {"rope_base", 150000}}},
        {"gpt-oss-120b", "llama", "gpt-oss-120b without biases and attention sinks (arXiv:2508.10925)",
            {{"layers", 36}, {"hidden", 2880}, {"heads", 64}, {"kv_heads", 8}, {"head_dim", 64},
                {"ffn", 2880}, {"seq", 4096}, {"vocab", 201088}, {"experts", 128}, {"top_k", 4},
                {"window", 128}, {"full_every", 2}, {"rope_base", 150000}}},
        {"deepseek-v2", "deepseek", "DeepSeek-V2 (arXiv:2405.04434, section 3.1.2)",
            {{"layers", 60}, {"hidden", 5120}, {"ffn", 1536}, {"vocab", 102400}, {"experts", 160},
                {"top_k", 6}, {"shared", 2}, {"dense", 1}, {"dense_ffn", 12288}, {"sigmoid", 0}}},
        {"deepseek-v3", "deepseek",
            "DeepSeek-V3 without its module of prediction (arXiv:2412.19437, section 4.2)", {}}};
}

} // namespace

std::vector<ZooFamily> publishedModels(const std::vector<ZooFamily> &families)
{
    std::vector<ZooFamily> models;
    for (const std::vector<Published> &all : {denseModels(), mixtures()})
        for (const Published &published : all) {
            const auto family = std::find_if(families.begin(), families.end(),
                [&](const ZooFamily &known) { return known.name == published.family; });
            assert(family != families.end());
            ZooFamily &model = models.emplace_back(*family);
            model.builtAs = published.family;
            model.name = published.name;
            model.meaning = published.meaning;
            for (const auto &[name, size] : published.sizes) {
                const auto parameter = std::find_if(model.parameters.begin(), model.parameters.end(),
                    [&, wanted = name](const ZooParameter &each) { return each.name == wanted; });
                assert(parameter != model.parameters.end());
                parameter->fallback = size;
            }
        }
    return models;
}

} // namespace planloom
