#include "engine/interop/configs/imported_design.h"

#include "engine/interop/configs/config_request.h"
#include "engine/table/table_text.h"

#include <utility>

namespace planloom {

namespace {

/// The fields that a row follows from, the one that it is most about first.
std::vector<const char *> fieldsOf(const std::string &text)
{
    const auto has = [&text](const char *part) { return text.find(part) != std::string::npos; };
    if (text.starts_with("mesh"))
        return {"tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
            "data_parallel", "devices"};
    if (text.starts_with("micro-batches"))
        return {"micro_batch", "global_batch", "accumulation"};
    if (text.starts_with("precision"))
        return {"precision", "reduce_in_bf16"};
    if (text.starts_with("recompute"))
        return {"recompute_modules", "recompute", "recompute_every", "recompute_method", "recompute_layers",
            "checkpoints_activations"};
    if (text.starts_with("zero"))
        return {"zero", "megatron_fsdp", "fsdp_strategy", "fsdp_sharding", "distributed_optimizer",
            "dp_shard", "shard_parts"};
    if (text.starts_with("offload"))
        return {has("states") ? "offload_states" : "offloaded_layers"};
    if (text.starts_with("overlap"))
        return {"overlap_tensor_parallel"};
    if (text.starts_with("layout") || text.starts_with("stage") || text.starts_with("place"))
        return {"layout", "first_stage_layers", "last_stage_layers", "pipeline_parallel", "virtual_pipeline",
            "layers_per_virtual_stage"};
    if (text.starts_with("schedule"))
        return {"schedule", "virtual_pipeline", "pipeline_parallel"};
    if (has(" over cp"))
        return {"context_parallel"};
    if (has(" over ep"))
        return {"expert_parallel"};
    if (has("sequence over tp"))
        return {"sequence_parallel", "tensor_parallel"};
    if (has(" over tp"))
        return {"tensor_parallel"};
    if (has(" over dp"))
        return {"data_parallel", "dp_shard", "devices", "gpus_per_node"};
    return {};
}

} // namespace

Result<ImportedDesign> designOf(const ImportedConfig &imported, const ModelSnapshot &model)
{
    const FrameworkConfig &config = imported.config;
    ImportedDesign design;
    TRY(design.request, requestOfConfig(config, model));
    design.request.upTo = PlanGrade::Checked;
    design.request.allowsCopies = true;
    TRY(const PlanAnswerSnapshot answer, planOf(design.request));
    ConstraintTable table = answer->table.table();
    for (Row &row : table.rows) {
        ImportedRow &made = design.rows.emplace_back();
        std::string note;
        for (const char *field : fieldsOf(print(row))) {
            const ConfigEntry *const entry = config.find(field);
            if (entry == nullptr || entry->key.empty() || note.find(entry->key + " ") != std::string::npos)
                continue;
            if (made.key.empty()) {
                made.key = entry->key;
                made.line = entry->line;
            }
            note += (note.empty() ? "" : ", ") + entry->key + " line " + std::to_string(entry->line);
        }
        row.origin = RowOrigin::Import;
        row.note = note;
        made.row = row;
    }
    design.request.table = TableDocument(print(table));
    design.request.gallery.clear();
    return design;
}

} // namespace planloom
