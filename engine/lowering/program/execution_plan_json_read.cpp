#include "engine/lowering/program/execution_plan_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/lowering/program/folded_from_json.h"
#include "engine/lowering/program/graph_json.h"
#include "engine/lowering/program/plan_value.h"
#include "engine/lowering/program/program_from_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace planloom {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

std::vector<DeviceId> devicesFromJson(const PlanValue &value, std::size_t count)
{
    std::vector<DeviceId> devices;
    for (const PlanValue &item : value.items())
        devices.push_back(DeviceId{item.index(count)});
    return devices;
}

Split splitFromJson(const PlanValue &item, const Operator &op)
{
    Split split;
    const json &kind = item.at("kind").json();
    if (kind == "dimension")
        split.kind = SplitKind::Dimension;
    else if (kind == "value")
        split.kind = SplitKind::Value;
    else if (kind != "replicate")
        item.fail("expected a kind of split");
    split.parts = item.at("parts").integer(1, 1 << 20);
    if (split.kind == SplitKind::Dimension)
        split.dimension = item.at("dimension").index(op.annotation.dimensions.size());
    if (const auto sizes = item.find("sizes"))
        split.sizes = sizes->integers<std::int64_t>(0, kMostSize);
    if (const auto axis = item.find("axis"))
        split.axis = axis->text();
    if (const auto over = item.find("over")) {
        const auto named = std::find(kSplitOver.begin() + 1, kSplitOver.end(), over->json());
        if (named == kSplitOver.end())
            over->fail("expected \"units\", \"slices\" or \"lanes\"");
        split.over = static_cast<SplitOver>(named - kSplitOver.begin());
    }
    return split;
}

AttentionMode attentionFromJson(const PlanValue &value)
{
    const json &name = value.json();
    const auto mode = name.is_string() ? attentionModeNamed(name.get<std::string>()) : std::nullopt;
    if (!mode)
        value.fail("expected fused or plain");
    return *mode;
}

/// What is missing is Float32.
Precision precisionFromJson(const PlanValue &value)
{
    if (!value.json().is_object())
        value.fail("expected an object");
    Precision precision;
    const auto type = [&](const char *name, DataType &member, bool (*fits)(DataType)) {
        const auto found = value.find(name);
        if (!found)
            return;
        const json &own = found->json();
        const auto known = own.is_string() ? dataTypeOfShortName(own.get_ref<const std::string &>())
                                           : std::optional<DataType>{};
        if (!known || !fits(*known))
            found->fail("expected a known type");
        member = *known;
    };
    type("compute", precision.compute, isComputeType);
    type("storage", precision.storage, isStorageType);
    type("gradient", precision.gradient, isStorageType);
    type("reduction", precision.reduction, isStorageType);
    type("optimizer", precision.optimizer, isStorageType);
    if (const auto scale = value.find("scale"))
        precision.lossScale = scale->integer<double>(1, kMostLossScale);
    return precision;
}

/// Reads a plan; the first thing that is wrong ends it with the JSON pointer of its place.
class Reader
{
public:
    explicit Reader(const json &document)
        : m_document(document, "")
    {
    }

    ExecutionPlan read()
    {
        if (!m_document.json().is_object() || m_document.at("format").json() != "planloom-execution-plan")
            m_document.fail("expected \"planloom-execution-plan\"", "/format");
        const PlanValue whole = m_document.at("version");
        if (const json &version = whole.json();
            !version.is_number_integer() || version < kPlanVersion || version > kFoldedVersion)
            whole.fail(
                "expected 1 to 7, found " + version.dump(-1, ' ', false, json::error_handler_t::replace));
        ExecutionPlan plan;
        auto graph = graphFromJson(m_document.at("graph").json());
        if (!graph)
            throw std::move(graph).error();
        plan.graph = std::make_shared<const Graph>(*std::move(graph));
        m_graph = plan.graph.get();
        readSizes(plan);
        const auto devices = m_document.at("devices").numbered();
        if (devices.empty())
            m_document.fail("expected at least one device", "/devices");
        m_deviceCount = devices.size();
        readBatch(m_document.at("batch"), plan);
        readPartitions(plan);
        if (const auto origin = m_document.find("origin")) {
            if (!origin->json().is_object())
                origin->fail("expected an object");
            for (const auto &[name, value] : origin->json().items())
                plan.origin[name] = origin->at(name).text();
        }
        for (const PlanValue &group : m_document.at("groups").numbered())
            plan.groups.push_back(devicesFromJson(group, m_deviceCount));
        if (m_document.at("version").json() == kFoldedVersion) {
            FoldedFromJson(m_document, plan, m_deviceCount).read();
            return plan;
        }
        const ProgramFromJson programs(plan, m_deviceCount);
        for (const PlanValue &device : devices)
            plan.devices.push_back(programs.device(device));
        return plan;
    }

private:
    void readSizes(ExecutionPlan &plan) const
    {
        plan.microBatches = m_document.at("micro_batches").integer(1, 1 << 20);
        if (const auto updates = m_document.find("updates"))
            plan.updates = updates->integer(1, plan.microBatches);
        if (plan.microBatches % plan.updates != 0)
            m_document.fail("expected a divisor of the number of micro-batches", "/updates");
        plan.stageCount = m_document.at("stages").integer(1, 1 << 20);
        if (const auto units = m_document.find("units")) {
            plan.units.count = units->at("count").integer(1, 1 << 20);
            plan.units.inner = units->at("inner").integer(1, 1 << 20);
            if (std::int64_t{plan.units.count} * plan.microBatches > (1 << 20))
                units->fail("expected at most 1048576 micro-batches in all", "/count");
        }
    }

    void readBatch(const PlanValue &value, ExecutionPlan &plan) const
    {
        const auto tensors = m_graph->tensors.size();
        const auto operators = m_graph->operators.size();
        BatchInfo &batch = plan.batch;
        batch.size = value.at("size").integer<std::int64_t>(0, kMostSize);
        batch.wholeBatches = value.flag("whole_batches", false);
        for (const auto role : value.at("tensor_role").integers(0, 4))
            batch.tensorRole.push_back(static_cast<BatchRole>(role));
        batch.tensorDimension = value.at("tensor_dimension").integers(-1, 1 << 20);
        batch.operatorDimension = value.at("operator_dimension").integers(-1, 1 << 20);
        for (const auto once : value.at("once_per_step").integers(0, 1))
            batch.oncePerStep.push_back(once != 0);
        batch.mostMicroBatches = value.at("most_micro_batches").integer<std::int64_t>(0, kMostSize);
        if (batch.tensorRole.size() != tensors || batch.tensorDimension.size() != tensors
            || batch.operatorDimension.size() != operators || batch.oncePerStep.size() != operators)
            value.fail("expected one entry per tensor and per operator");
        for (std::size_t t = 0; t < tensors; ++t) {
            const Shape &shape = m_graph->tensors[t].type.shape;
            const std::string place = "/tensor_dimension/" + std::to_string(t);
            if (batch.tensorDimension[t] >= static_cast<std::int32_t>(shape.size()))
                value.fail("the tensor has fewer dimensions", place);
            if (batch.tensorRole[t] == BatchRole::Split
                && (batch.tensorDimension[t] < 0
                    || shape[at(batch.tensorDimension[t])] % batchCuts(plan) != 0))
                value.fail("micro-batches do not divide this dimension", place);
        }
        for (std::size_t o = 0; o < operators; ++o)
            if (batch.operatorDimension[o]
                >= static_cast<std::int32_t>(m_graph->operators[o].annotation.dimensions.size()))
                value.fail("the operator has fewer dimensions", "/operator_dimension/" + std::to_string(o));
    }

    void readPartitions(ExecutionPlan &plan) const
    {
        const PlanValue all = m_document.at("decisions");
        const auto decisions = all.numbered();
        if (decisions.size() != m_graph->operators.size())
            all.fail("expected one per operator");
        for (std::size_t o = 0; o < decisions.size(); ++o) {
            const PlanValue &decision = decisions[o];
            const OperatorId op{static_cast<std::int32_t>(o)};
            Partition partition;
            const PlanValue splits = decision.at("splits");
            for (const PlanValue &item : splits.items())
                partition.splits.push_back(splitFromJson(item, m_graph->at(op)));
            std::int64_t parts = 1;
            for (const Split &split : partition.splits)
                if ((parts *= split.parts) > (1 << 20))
                    splits.fail("expected at most 1048576 parts");
            const std::vector<Range> outer = microBatchRanges(plan.batch, *m_graph, op, 0, batchCuts(plan));
            if (const auto legal = checkPartition(m_graph->at(op), partition, outer); !legal)
                splits.fail(legal.error().message);
            const PlanValue devices = decision.at("devices");
            plan.placement.push_back(devicesFromJson(devices, m_deviceCount));
            if (static_cast<std::int64_t>(plan.placement.back().size()) != parts / unitParts(partition))
                devices.fail("expected one device per part");
            if (const auto precision = decision.find("precision")) {
                plan.precisions.resize(decisions.size());
                plan.precisions[o] = precisionFromJson(*precision);
            }
            plan.partitions.push_back(std::move(partition));
            const auto attention = decision.find("attention");
            plan.attention.push_back(attention ? attentionFromJson(*attention) : AttentionMode::Fused);
            if (const auto versions = decision.find("weight_versions")) {
                plan.weightVersions.resize(decisions.size(), 1);
                plan.weightVersions[o] = versions->integer(1, kMostWeightVersions);
            }
        }
    }

    PlanValue m_document;
    const Graph *m_graph = nullptr;
    std::size_t m_deviceCount = 1;
};

} // namespace

Result<ExecutionPlan> executionPlanFromJson(std::string_view text)
{
    try {
        // Depth is bounded by what is read; the parser itself is not recursive.
        const json document = json::parse(text);
        return Reader(document).read();
    } catch (Error &error) {
        return std::move(error);
    } catch (const json::parse_error &error) {
        return Error{ErrorCode::InvalidInput, "this is not JSON",
            "write the plan again with planloom-cli solve --out", "byte:" + std::to_string(error.byte)};
    } catch (const json::exception &error) {
        return Error{ErrorCode::InvalidInput, std::string("a value has the wrong type: ") + error.what(),
            "write the plan again with planloom-cli solve --out", "/"};
    }
}

} // namespace planloom
