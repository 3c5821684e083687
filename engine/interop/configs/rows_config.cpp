#include "engine/interop/configs/rows_config.h"

#include "engine/gallery/layer_modules.h"
#include "engine/interop/configs/config_request.h"
#include "engine/table/layer_layout.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_document.h"
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
        const std::int64_t cp = size("cp") * size("ulysses");
        const std::int64_t all = dp * size("pp") * cp * size("tp");
        if (all != deviceCount)
            return Error{ErrorCode::InvalidInput,
                "configs say degrees of data, tensor, pipeline, context and expert parallelism, and those of "
                "this plan's mesh make "
                    + std::to_string(all) + " of its " + std::to_string(deviceCount) + " devices",
                "name its axes dp, tp, pp, cp, ulysses and ep", "mesh"};
        for (const auto &[field, value] : {std::pair("devices", std::int64_t{deviceCount}),
                 std::pair("data_parallel", dp), std::pair("tensor_parallel", size("tp")),
                 std::pair("pipeline_parallel", size("pp")), std::pair("context_parallel", cp),
                 std::pair("ulysses", size("ulysses")), std::pair("expert_parallel", size("ep")),
                 std::pair("micro_batches", microBatches), std::pair("global_batch", batch),
                 std::pair("micro_batch", std::max<std::int64_t>(1, batch / dp / microBatches))})
            set(field, static_cast<double>(value));
        if (!m_config.has("sequence_parallel"))
            set("sequence_parallel", false);
        takeStages(size("pp"));
        takeRecomputation();
        takeOrder();
        return std::move(m_config);
    }

    FrameworkConfig takeSettings()
    {
        for (const Row *row : m_rows)
            takeRow(*row);
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

    /// Whether stages or replicas lie side by side.
    void takeOrder()
    {
        std::vector<std::string> axes;
        for (const Row *row : m_rows)
            if (const auto *mesh = std::get_if<MeshRule>(&row->rule))
                for (const MeshAxis &axis : mesh->axes)
                    if (axis.size > 1)
                        axes.push_back(axis.name);
        const auto stages = std::find(axes.begin(), axes.end(), "pp");
        if (stages != axes.end() && stages != axes.begin())
            set("pipeline_inside", true);
    }

    /// All layers, some of each stage, runs of layers, or the modules whose rows stand here.
    void takeRecomputation()
    {
        std::set<std::string> texts;
        for (const Row *row : m_rows)
            if (std::holds_alternative<RecomputeRule>(row->rule))
                texts.insert(print(*row));
        if (texts.empty())
            return;
        if (texts.contains("recompute layer:* per layer"))
            return set("recompute", std::string("full"));
        std::vector<std::string> modules;
        for (const std::string_view word : layerModuleWords()) {
            const auto rows = recomputedModuleRows(m_model, word);
            const bool has = rows && !rows->rows.empty()
                && std::all_of(rows->rows.begin(), rows->rows.end(),
                    [&texts](const Row &row) { return texts.contains(print(row)); });
            if (has)
                modules.emplace_back(word);
        }
        if (!modules.empty())
            return set("recompute_modules", std::move(modules));
        takeRecomputedLayers(texts);
    }

    void takeRecomputedLayers(const std::set<std::string> &texts)
    {
        const auto layers = static_cast<std::int64_t>(m_model.index->layers().scopes.size());
        for (const char *method : {"block", "uniform"})
            for (std::int64_t count = 1; count < layers; ++count) {
                FrameworkConfig trial = m_config;
                trial.derive("recompute", std::string("full"));
                trial.derive("recompute_method", std::string(method));
                trial.derive("recompute_layers", static_cast<double>(count));
                const auto rows = recomputationOf(trial, m_model, trial.text("layout"));
                if (rows && linesOf(*rows) == texts) {
                    m_config = std::move(trial);
                    return;
                }
            }
    }

    static std::set<std::string> linesOf(const std::string &rows)
    {
        const ConstraintTable table = TableDocument(rows).table();
        std::set<std::string> texts;
        for (const Row &row : table.rows)
            texts.insert(print(row));
        return texts;
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

FrameworkConfig settingsOfRows(const ConstraintTable &table, const Model &model)
{
    return RowsTaker(table, model).takeSettings();
}

bool decidesAlike(const Plan &a, const Plan &b, const std::vector<DeviceId> &ranks)
{
    const auto counts = [](const Plan &plan) {
        return std::tuple(plan.deviceCount, plan.units.count, plan.microBatches, plan.wholeBatches,
            plan.updates, plan.stageCount, plan.schedule, plan.overlap, plan.inFlight);
    };
    if (counts(a) != counts(b) || (ranks.empty() && a.units != b.units))
        return false;
    // Devices are numbered inside of a unit: by where those of the first unit are in the cluster.
    std::map<DeviceId, DeviceId> numberInA;
    std::vector<DeviceId> standsFor;
    for (std::int32_t i = 0; !ranks.empty() && i < a.deviceCount; ++i)
        numberInA[a.units.deviceOf(0, DeviceId{i})] = DeviceId{i};
    for (std::int32_t i = 0; !ranks.empty() && i < b.deviceCount; ++i) {
        const auto found = numberInA.find(ranks[at(b.units.deviceOf(0, DeviceId{i}))]);
        if (found == numberInA.end())
            return false;
        standsFor.push_back(found->second);
    }
    const auto renumbered = [&standsFor](const OperatorDecision &decision) {
        OperatorDecision there = bare(decision);
        for (DeviceId &device : there.devices)
            device = standsFor.empty() ? device : standsFor[at(device)];
        return there;
    };
    return a.order == b.order && areAlike(a.orders, b.orders)
        && areAlike(a.communicationOrders, b.communicationOrders) && areAlike(a.interleaved, b.interleaved)
        && std::equal(a.decisions.begin(), a.decisions.end(), b.decisions.begin(), b.decisions.end(),
            [&](const OperatorDecision &x, const OperatorDecision &y) { return bare(x) == renumbered(y); });
}

} // namespace planloom
