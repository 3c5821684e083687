#include "engine/interop/configs/rows_config.h"

#include "engine/gallery/layer_modules.h"
#include "engine/interop/configs/config_request.h"
#include "engine/table/layer_layout.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Takes down what each row says.
class RowsTaker
{
public:
    RowsTaker(const ConstraintTable &table, const Model &model)
        : m_model(model)
    {
        for (const Row &row : table.rows)
            if (row.enabled && row.preference == 0)
                m_rows.push_back(&row);
    }

    Result<FrameworkConfig> take(std::int32_t deviceCount, std::int64_t batch)
    {
        std::map<std::string, std::int64_t> axes;
        std::int64_t microBatches = 1;
        for (const Row *row : m_rows) {
            if (const auto *mesh = std::get_if<MeshRule>(&row->rule))
                for (const MeshAxis &axis : mesh->axes)
                    axes[axis.name] = axis.size;
            if (const auto *micro = std::get_if<MicroBatchesRule>(&row->rule))
                microBatches = micro->count;
            takeRow(*row);
        }
        const auto size = [&axes](const char *axis) {
            const auto found = axes.find(axis);
            return found == axes.end() ? std::int64_t{1} : found->second;
        };
        const std::int64_t dp = size("dp") * size("ep");
        const std::int64_t all = dp * size("pp") * size("cp") * size("tp");
        if (all != deviceCount)
            return Error{ErrorCode::InvalidInput,
                "configs say degrees of data, tensor, pipeline, context and expert parallelism, and those of "
                "this plan's "
                "mesh make "
                    + std::to_string(all) + " of its " + std::to_string(deviceCount) + " devices",
                "name its axes dp, tp, pp, cp and ep", "mesh"};
        for (const auto &[field, value] :
            {std::pair("devices", std::int64_t{deviceCount}), std::pair("data_parallel", dp),
                std::pair("tensor_parallel", size("tp")), std::pair("pipeline_parallel", size("pp")),
                std::pair("context_parallel", size("cp")), std::pair("expert_parallel", size("ep")),
                std::pair("micro_batches", microBatches), std::pair("global_batch", batch),
                std::pair("micro_batch", std::max<std::int64_t>(1, batch / dp / microBatches))})
            set(field, static_cast<double>(value));
        takeStages(size("pp"));
        takeRecomputation();
        return std::move(m_config);
    }

private:
    void set(const char *field, SettingValue value) { m_config.derive(field, std::move(value)); }

    void takeRow(const Row &row)
    {
        const std::string text = print(row);
        if (const auto *zero = std::get_if<OptimizerShardingRule>(&row.rule);
            zero != nullptr && !zero->chosen) {
            set("zero", static_cast<double>(zero->stage));
            if (zero->parts > 0)
                set("shard_parts", static_cast<double>(zero->parts));
        } else if (const auto *schedule = std::get_if<ScheduleRule>(&row.rule);
                   schedule != nullptr && !schedule->chosen) {
            if (schedule->kind != ScheduleKind::Interleaved)
                set("schedule", std::string(nameOf(schedule->kind)));
        } else if (std::holds_alternative<PrecisionRule>(row.rule)) {
            for (const char *word : {"fp32", "tf32", "bf16", "fp16", "fp8"})
                if (text.starts_with(std::string("precision all : ") + word))
                    set("precision", std::string(word));
            if (text.ends_with("reduction=bf16"))
                set("reduce_in_bf16", true);
        } else if (std::holds_alternative<OverlapRule>(row.rule))
            set("overlap_tensor_parallel", text == "overlap tensor");
        else if (text == "offload all : states")
            set("offload_states", true);
        else if (text.starts_with("offload layer:0-") && text.ends_with(" : activations")) {
            std::int32_t last = -1;
            std::from_chars(text.data() + 16, text.data() + text.size(), last);
            set("offloaded_layers", static_cast<double>(last + 1));
        } else if (text.ends_with(" : sequence over tp"))
            set("sequence_parallel", true);
    }

    /// The layers of each stage, whatever kind of row says them.
    void takeStages(std::int64_t ranks)
    {
        if (!m_config.has("sequence_parallel"))
            set("sequence_parallel", false);
        std::map<std::int32_t, std::int64_t> layersOfStage;
        const SelectorIndex &index = *m_model.index;
        for (const Row *row : m_rows) {
            if (const auto *layout = std::get_if<LayoutRule>(&row->rule)) {
                set("layout", layout->layout);
                if (const auto stages = parseLayout(layout->layout))
                    set("virtual_pipeline",
                        static_cast<double>(
                            static_cast<std::int64_t>(stages->size()) / std::max<std::int64_t>(1, ranks)));
                return;
            }
            const auto *stage = std::get_if<StageRule>(&row->rule);
            if (stage == nullptr)
                continue;
            std::set<std::int32_t> layers;
            for (const OperatorId op : index.select(row->selector))
                if (index.layerOf(op) >= 0)
                    layers.insert(index.layerOf(op));
            layersOfStage[stage->index] += static_cast<std::int64_t>(layers.size());
        }
        if (layersOfStage.size() < 2 || ranks < 2)
            return;
        std::vector<std::int64_t> each;
        for (const auto &[stage, layers] : layersOfStage)
            each.push_back(layers);
        set("layout", evenLayout(each));
        set("virtual_pipeline", static_cast<double>(static_cast<std::int64_t>(each.size()) / ranks));
    }

    /// All layers, or the modules whose rows stand here.
    void takeRecomputation()
    {
        std::set<std::string> texts;
        for (const Row *row : m_rows)
            if (std::holds_alternative<RecomputeRule>(row->rule))
                texts.insert(print(*row));
        if (texts.contains("recompute layer:* per layer"))
            return set("recompute", std::string("full"));
        std::vector<std::string> modules;
        for (const char *word :
            {"core_attn", "mla_up_proj", "layernorm", "mlp", "moe", "moe_act", "shared_experts"}) {
            const auto rows = texts.empty() ? Result<ConstraintTable>(ConstraintTable{})
                                            : recomputedModuleRows(m_model, word);
            const bool has = rows && !rows->rows.empty()
                && std::all_of(rows->rows.begin(), rows->rows.end(),
                    [&texts](const Row &row) { return texts.contains(print(row)); });
            if (has)
                modules.emplace_back(word);
        }
        if (!modules.empty())
            set("recompute_modules", std::move(modules));
    }

    const Model &m_model;
    std::vector<const Row *> m_rows{};
    FrameworkConfig m_config{};
};

/// Alike but for the rows that they follow from.
template<typename Order> bool areAlike(const std::vector<Order> &a, const std::vector<Order> &b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Order x, const Order &y) {
        x.row = y.row;
        return x == y;
    });
}

/// Without the rows that it follows from.
OperatorDecision bare(OperatorDecision decision)
{
    decision.rows.clear();
    decision.precisionRows.clear();
    decision.why.clear();
    return decision;
}

} // namespace

Result<FrameworkConfig> configOfRows(
    const ConstraintTable &table, const Model &model, std::int32_t deviceCount, std::int64_t batch)
{
    return RowsTaker(table, model).take(deviceCount, batch);
}

bool decidesAlike(const Plan &a, const Plan &b)
{
    const auto counts = [](const Plan &plan) {
        return std::tuple(plan.deviceCount, plan.units, plan.microBatches, plan.wholeBatches, plan.updates,
            plan.stageCount, plan.schedule, plan.overlap, plan.inFlight);
    };
    return counts(a) == counts(b) && a.order == b.order && areAlike(a.orders, b.orders)
        && areAlike(a.communicationOrders, b.communicationOrders) && areAlike(a.interleaved, b.interleaved)
        && std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
            [](const OperatorDecision &x, const OperatorDecision &y) { return bare(x) == bare(y); });
}

} // namespace planloom
