#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace planloom {

/// What a file says in one place. Numbers and words of lists stand as they are there.
using SettingValue = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;

// A value as one kind of it; nothing where it is null or of another kind.
std::string textOf(const SettingValue *value);
std::optional<double> numberOf(const SettingValue *value);
/// Within 1e15, so that sizes can be multiplied.
std::int64_t countOf(const SettingValue *value, std::int64_t missing);
std::optional<bool> flagOf(const SettingValue *value);
std::vector<double> numbersOf(const SettingValue *value);
std::vector<std::string> wordsOf(const SettingValue *value); ///< One word for a text.
/// As people write it: "4", "true", "core_attn moe_act".
std::string wordOf(const SettingValue &value);

/// One setting of a training framework, by a name that all frameworks share.
struct ConfigEntry {
    SettingValue value{};
    std::string key{}; ///< As the framework's file calls it; empty where no file said it.
    std::int32_t line = 0; ///< From 1; 0 where no file said it.
    friend bool operator==(const ConfigEntry &, const ConfigEntry &) = default;
};

/// How a model is trained, in one vocabulary for all frameworks: what tensor_model_parallel_size,
/// tensor_parallel_degree and tp_size say is "tensor_parallel" here.
///
/// Sizes of the model: model (a published one), layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary,
/// sequence, gated, activation, tied_embeddings, window, rope_base, qk_norm, experts, experts_per_token,
/// expert_ffn, dense_layers, shared_experts, mtp_layers, q_lora, kv_lora, qk_nope, qk_rope, v_head, ...
///
/// Of the plan: devices, data_parallel, tensor_parallel, pipeline_parallel, virtual_pipeline,
/// context_parallel, expert_parallel, sequence_parallel, layout, schedule, global_batch, micro_batch,
/// micro_batches, zero, shard_parts (replicas that share, where not all do), precision, reduce_in_bf16,
/// recompute (none, selective, full), recompute_modules, recompute_every, recompute_layers, offloaded_layers,
/// offload_states, overlap_tensor_parallel; cluster and framework, as profiles are called.
class FrameworkConfig
{
public:
    const ConfigEntry *find(std::string_view name) const; ///< Null where nothing is known.
    bool has(std::string_view name) const { return find(name) != nullptr; }
    void set(std::string_view name, ConfigEntry entry) { m_entries[std::string(name)] = std::move(entry); }
    /// What follows from `source` stands at its place.
    void derive(std::string_view name, SettingValue value, std::string_view source = {});
    void remove(std::string_view name);

    std::string text(std::string_view name) const; ///< Empty where nothing, or no text, is known.
    std::optional<double> number(std::string_view name) const;
    std::int64_t count(std::string_view name, std::int64_t missing = 1) const;
    std::optional<bool> flag(std::string_view name) const;
    bool says(std::string_view name) const { return flag(name).value_or(false); }
    std::vector<std::string> words(std::string_view name) const;

    const std::map<std::string, ConfigEntry, std::less<>> &entries() const { return m_entries; }
    friend bool operator==(const FrameworkConfig &, const FrameworkConfig &) = default;

private:
    std::map<std::string, ConfigEntry, std::less<>> m_entries{};
};

} // namespace planloom
