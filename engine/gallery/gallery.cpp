#include "engine/gallery/gallery.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_context.h"
#include "engine/gallery/gallery_experts.h"
#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/gallery/gallery_spatial.h"
#include "engine/gallery/gallery_tensor_parallel.h"
#include "engine/plan/complete.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace planloom {

namespace {

/// A gallery plan as numbers.
struct Recipe {
    std::string name{};
    std::int32_t dp = 1;
    std::int32_t tp = 1;
    std::int32_t cp = 1;
    std::int32_t ep = 1; ///< Experts are spread over so many replicas, all else is split along the batch.
    std::int32_t pp = 1;
    std::int32_t interleave = 1; ///< Stages on each rank of the pipeline.
    std::optional<SpatialParts> space{}; ///< Of `spatial`: nothing until it says, or the model does.
    std::int32_t zero = 0; ///< Stage.
    bool ring = true; ///< Context parallel: keys and values go round; else they are gathered.
    bool sequence = false; ///< Sequence parallel between the tensor-parallel regions.
    ScheduleKind schedule = ScheduleKind::OneFOneB;
    std::int32_t microBatches = 0; ///< 0 chooses.
    std::int32_t updateEvery = 0; ///< Of PipeDream-2BW; 0 chooses.

    bool isPipeDream() const { return name.starts_with("pipedream"); }
    bool isSpatial() const { return name == "spatial"; }
    bool isBidirectional() const { return name == "bidirectional"; }
    /// Into how many parts every micro-batch is cut.
    std::int32_t batchParts() const { return isBidirectional() ? 2 : dp * ep; }
};

Error wrongSpec(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "gallery"};
}

Result<std::int32_t> numberOf(const std::string &key, std::string_view text)
{
    std::int32_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || failure != std::errc{} || end != text.data() + text.size() || value < 0
        || value > 65536)
        return wrongSpec("expected a number from 0 to 65536 for '" + key + "', found '"
            + std::string(text.substr(0, 40)) + "'");
    return value;
}

Result<Recipe> readSpec(std::string_view spec, std::int32_t deviceCount)
{
    Recipe recipe;
    const std::size_t colon = spec.find(':');
    recipe.name = std::string(spec.substr(0, colon));
    static const std::map<std::string, std::set<std::string>, std::less<>> kParameters{
        {"single", {"micro-batches"}},
        {"data-parallel", {"micro-batches"}},
        {"tensor-parallel", {"sequence", "micro-batches"}},
        {"context-parallel", {"ring", "micro-batches"}},
        {"expert-parallel", {"micro-batches"}},
        {"spatial", {"dp", "depth", "height", "width", "micro-batches"}},
        {"pipeline", {"stages", "interleave", "schedule", "micro-batches"}},
        {"pipedream", {"stages", "micro-batches"}},
        {"pipedream-2bw", {"stages", "micro-batches", "update-every"}},
        {"bidirectional", {"stages", "micro-batches"}},
        {"zero1", {"micro-batches"}},
        {"zero2", {"micro-batches"}},
        {"zero3", {"micro-batches"}},
        {"3d",
            {"dp", "ep", "tp", "cp", "pp", "zero1", "zero", "sequence", "ring", "interleave", "schedule",
                "micro-batches"}},
    };
    const auto known = kParameters.find(recipe.name);
    if (known == kParameters.end()) {
        return Error{ErrorCode::NotFound, "there is no gallery plan '" + recipe.name.substr(0, 60) + "'",
            "single, data-parallel, tensor-parallel, context-parallel, expert-parallel, spatial, pipeline, "
            "pipedream, pipedream-2bw, bidirectional, zero1, zero2, zero3 or 3d",
            "gallery"};
    }
    if (recipe.name.starts_with("zero"))
        recipe.zero = recipe.name.back() - '0';
    if (recipe.name == "data-parallel" || recipe.zero > 0)
        recipe.dp = deviceCount;
    if (recipe.name == "tensor-parallel")
        recipe.tp = deviceCount;
    if (recipe.name == "context-parallel")
        recipe.cp = deviceCount;
    if (recipe.name == "expert-parallel")
        recipe.ep = deviceCount;
    if (recipe.name == "pipeline" || recipe.isPipeDream() || recipe.isBidirectional())
        recipe.pp = deviceCount;

    std::string_view rest = colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
        const std::size_t equals = item.find('=');
        const std::string key(item.substr(0, equals));
        if (equals == std::string_view::npos || !known->second.contains(key)) {
            std::string keys;
            for (const std::string &name : known->second)
                keys += (keys.empty() ? "" : ", ") + name;
            return wrongSpec("'" + std::string(item.substr(0, 60)) + "' is no parameter of " + recipe.name,
                "parameters, as key=value: " + keys);
        }
        const std::string_view value = item.substr(equals + 1);
        if (key == "schedule") {
            const auto kind = scheduleNamed(value);
            if (!kind)
                return wrongSpec(
                    "there is no schedule '" + std::string(value.substr(0, 40)) + "'", scheduleNames());
            recipe.schedule = *kind;
            continue;
        }
        TRY(const std::int32_t number, numberOf(key, value));
        if (key == "zero1")
            recipe.zero = number != 0 ? 1 : 0;
        else if (key == "zero" && number > 3)
            return wrongSpec("'zero' must be a stage from 0 to 3");
        else if (key == "zero")
            recipe.zero = number;
        else if (key == "sequence")
            recipe.sequence = number != 0;
        else if (key == "ring")
            recipe.ring = number != 0;
        else if (number == 0)
            return wrongSpec("'" + key + "' must be at least 1");
        else if (key == "micro-batches")
            recipe.microBatches = number;
        else if (key == "update-every")
            recipe.updateEvery = number;
        else if (key == "dp")
            recipe.dp = number;
        else if (key == "depth" || key == "height" || key == "width") {
            if (!recipe.space)
                recipe.space.emplace();
            (key == "depth"          ? recipe.space->depth
                    : key == "width" ? recipe.space->width
                                     : recipe.space->height) = number;
        } else if (key == "tp")
            recipe.tp = number;
        else if (key == "cp")
            recipe.cp = number;
        else if (key == "ep")
            recipe.ep = number;
        else if (key == "interleave")
            recipe.interleave = number;
        else // pp of 3d, stages of pipeline
            recipe.pp = number;
    }
    if (recipe.isSpatial()) {
        const std::int64_t space = recipe.space ? recipe.space->count() : deviceCount / recipe.dp;
        if (space < 2 || space * recipe.dp != deviceCount)
            return wrongSpec(recipe.name + " cuts every sample in " + std::to_string(space) + " for dp="
                    + std::to_string(recipe.dp) + ", the cluster has " + counted(deviceCount, "device"),
                "make the product of dp, depth, height and width the number of devices, and cut in two at "
                "least");
        return recipe;
    }
    const std::int64_t needed = std::int64_t{recipe.dp} * recipe.ep * recipe.tp * recipe.cp * recipe.pp;
    if (recipe.name != "single" && needed != deviceCount) {
        return wrongSpec(recipe.name + " needs " + counted(needed, "device")
                + " (dp=" + std::to_string(recipe.dp) + " x pp=" + std::to_string(recipe.pp)
                + (recipe.ep > 1 ? " x ep=" + std::to_string(recipe.ep) : "")
                + (recipe.cp > 1 ? " x cp=" + std::to_string(recipe.cp) : "")
                + " x tp=" + std::to_string(recipe.tp) + "), the cluster has " + std::to_string(deviceCount),
            "make the product of dp, ep, pp, cp and tp the number of devices");
    }
    return recipe;
}

/// Whether the batch of every operator divides into `parts`; the reason if not.
Result<void> checkBatch(const Graph &graph, const BatchInfo &batch, std::int64_t parts, const char *what)
{
    if (batch.size == 0) {
        return wrongSpec(std::string(what) + " needs a batch dimension, the model has none"
            + (batch.limitedBy.empty() ? "" : ": " + batch.limitedBy));
    }
    if (batch.size % parts != 0) {
        return wrongSpec(std::string(what) + ": the mini-batch has " + counted(batch.size, "sample")
                + ", which " + std::to_string(parts) + " does not divide",
            "use a number of replicas and micro-batches whose product divides the batch");
    }
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const std::int32_t identifier = batch.operatorDimension[i];
        if (op.direction != Direction::Forward || identifier < 0)
            continue;
        const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(identifier)].size;
        if (size % parts != 0) {
            return wrongSpec(std::string(what) + ": the batch of operator '" + op.name + "' has size "
                    + std::to_string(size) + " (mini-batch " + std::to_string(batch.size) + "), which "
                    + std::to_string(parts) + " does not divide",
                "use a number of replicas and micro-batches whose product divides the batch");
        }
    }
    return {};
}

Result<std::int32_t> microBatchesOf(const Graph &graph, const BatchInfo &batch, const Recipe &recipe)
{
    if (recipe.microBatches > 0) {
        if (recipe.microBatches == 1)
            return 1;
        if (batch.size <= 1)
            return recipe.microBatches; // nothing to cut: every micro-batch is a whole batch
        if (recipe.microBatches > batch.mostMicroBatches) {
            return wrongSpec("no more than " + counted(batch.mostMicroBatches, "micro-batch") + " can be made"
                + (batch.limitedBy.empty() ? "" : ": " + batch.limitedBy));
        }
        TRY_VOID(checkBatch(
            graph, batch, std::int64_t{recipe.microBatches} * recipe.batchParts(), "micro-batches"));
        return recipe.microBatches;
    }
    if (recipe.pp == 1)
        return 1;
    const std::int64_t most = std::min<std::int64_t>(batch.mostMicroBatches, std::int64_t{4} * recipe.pp);
    for (std::int64_t count = most; count > 1; --count) {
        if (recipe.interleave > 1 && count % recipe.pp != 0)
            continue;
        if (batch.size % count == 0 && checkBatch(graph, batch, count * recipe.batchParts(), "micro-batches"))
            return static_cast<std::int32_t>(count);
    }
    return 1;
}

/// One half of every micro-batch runs through the devices forth, the other back.
Result<void> appendBidirectional(
    const Model &model, const Recipe &recipe, const CostModel &costs, ConstraintTable &table)
{
    if (recipe.pp % 2 != 0)
        return wrongSpec(
            "pipelines in both directions need an even number of devices, not " + std::to_string(recipe.pp));
    TRY_VOID(checkBatch(*model.graph, *model.batch, 2, "pipelines in both directions"));
    table.rows.push_back(templateRow({}, LanesRule{}));
    TRY(const auto stages, pipelineStages(*model.index, recipe.pp, costs));
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Selector selector = stageSelector(*model.index, stages[s]);
        const auto number = static_cast<std::int32_t>(s);
        table.rows.push_back(
            templateRow(selector, OpAssignRule{{DeviceId{number}, DeviceId{recipe.pp - 1 - number}}, {}}));
        table.rows.push_back(templateRow(selector, StageRule{number}));
    }
    table.rows.push_back(templateRow({}, ScheduleRule{ScheduleKind::Chimera}));
    return {};
}

/// How many micro-batches make an update, of `microBatches`; 0 for all of them. PipeDream updates with every
/// one. PipeDream-2BW (arXiv:2006.09503, section 3.1) takes at least as many as there are stages: then the
/// weights that a stage needs next are made in time, and two versions do.
Result<std::int32_t> updateEvery(const Recipe &recipe, std::int32_t microBatches)
{
    if (!recipe.isPipeDream() || microBatches == 1)
        return 0;
    if (recipe.name == "pipedream")
        return 1;
    if (recipe.updateEvery > 0) {
        if (microBatches % recipe.updateEvery != 0)
            return wrongSpec("updates every " + counted(recipe.updateEvery, "micro-batch") + " do not divide "
                    + std::to_string(microBatches),
                "use a divisor of the number of micro-batches");
        return recipe.updateEvery;
    }
    std::int32_t every = std::min(recipe.pp, microBatches);
    while (microBatches % every != 0)
        ++every;
    return every;
}

Result<void> appendPipeline(
    const SelectorIndex &index, const Recipe &recipe, const CostModel &costs, ConstraintTable &table)
{
    // Where the mesh dp x pp x ep x cp x tp puts the stages.
    const std::int32_t shards = recipe.ep * recipe.cp * recipe.tp;
    std::vector<std::set<std::int32_t>> classes(static_cast<std::size_t>(recipe.pp * recipe.interleave));
    for (std::size_t s = 0; s < classes.size(); ++s)
        for (std::int32_t replica = 0; replica < recipe.dp; ++replica)
            for (std::int32_t shard = 0; shard < shards; ++shard)
                classes[s].insert(costs.classOf(
                    {(replica * recipe.pp + static_cast<std::int32_t>(s) % recipe.pp) * shards + shard}));
    TRY(const auto stages, pipelineStages(index, recipe.pp * recipe.interleave, costs, classes));
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Selector selector = stageSelector(index, stages[s]);
        const auto number = static_cast<std::int32_t>(s);
        table.rows.push_back(templateRow(selector, OpAssignRule{{}, {{"pp", number % recipe.pp}}}));
        table.rows.push_back(templateRow(selector, StageRule{number}));
        // So many micro-batches are in flight from here to the end and back (PipeDream, SOSP '19,
        // section 3.3).
        if (recipe.name == "pipedream" && number + 1 < recipe.pp)
            table.rows.push_back(templateRow(selector, WeightVersionsRule{recipe.pp - number}));
    }
    if (recipe.name == "pipedream-2bw")
        table.rows.push_back(templateRow({}, WeightVersionsRule{2}));
    const bool interleaves = recipe.interleave > 1 && recipe.schedule == ScheduleKind::OneFOneB;
    table.rows.push_back(
        templateRow({}, ScheduleRule{interleaves ? ScheduleKind::Interleaved : recipe.schedule}));
    return {};
}

} // namespace

const std::vector<GalleryEntry> &galleryEntries()
{
    static const std::vector<GalleryEntry> kEntries{
        {"single", "everything on one device", {"micro-batches=N"}},
        {"data-parallel", "every device has the whole model and a part of the batch", {"micro-batches=N"}},
        {"tensor-parallel", "weights cut into columns and rows, as in Megatron-LM",
            {"sequence=0|1", "micro-batches=N"}},
        {"context-parallel",
            "sequences cut into parts; keys and values go round the devices (ring attention)",
            {"ring=0|1", "micro-batches=N"}},
        {"expert-parallel",
            "experts of mixtures spread over the devices, all else split along the batch (all-to-all)",
            {"micro-batches=N"}},
        {"spatial", "images or volumes cut in space, with halos exchanged; times data parallel",
            {"dp=N", "depth=N", "height=N", "width=N", "micro-batches=N"}},
        {"pipeline", "stages of consecutive layers, balanced by cost",
            {"stages=N", "interleave=N", "schedule=1f1b|gpipe|combined-1f1b|zb-h1|sequential",
                "micro-batches=N"}},
        {"pipedream", "a pipeline that is never flushed: updates with every micro-batch, weight stashing",
            {"stages=N", "micro-batches=N"}},
        {"pipedream-2bw", "a pipeline that is never flushed, with two versions of the weights",
            {"stages=N", "micro-batches=N", "update-every=N"}},
        {"bidirectional", "pipelines in both directions, with a copy of the weights each (Chimera)",
            {"stages=N", "micro-batches=N"}},
        {"zero1", "data parallel with the optimizer cut over the replicas", {"micro-batches=N"}},
        {"zero2", "zero1 with the gradients cut too", {"micro-batches=N"}},
        {"zero3", "zero2 with the weights cut too, gathered before their use", {"micro-batches=N"}},
        {"3d", "data, pipeline, expert, context and tensor parallel",
            {"dp=N", "ep=N", "tp=N", "cp=N", "pp=N", "interleave=N", "zero=0|1|2|3", "sequence=0|1",
                "ring=0|1", "schedule=1f1b|gpipe|combined-1f1b|zb-h1|sequential", "micro-batches=N"}},
    };
    return kEntries;
}

Result<ConstraintTable> galleryTable(
    std::string_view spec, const Model &model, std::int32_t deviceCount, const CostModel &costs)
{
    if (!model || deviceCount < 1)
        return wrongSpec("a gallery plan needs a model and at least one device");
    TRY(Recipe recipe, readSpec(spec, deviceCount));
    if (recipe.isSpatial() && !recipe.space) {
        TRY(recipe.space, outermostInSpace(model, deviceCount / recipe.dp));
    }
    const Graph &graph = *model.graph;
    const BatchInfo &batch = *model.batch;

    ConstraintTable table;
    MeshRule mesh;
    for (const auto &[name, size] : {std::pair{"dp", recipe.dp}, {"pp", recipe.pp}, {"ep", recipe.ep},
             {"cp", recipe.cp}, {"tp", recipe.tp}}) {
        if (size > 1 && !recipe.isBidirectional())
            mesh.axes.push_back({name, size});
    }
    if (recipe.space)
        for (const auto &[name, size] : recipe.space->axes())
            if (size > 1)
                mesh.axes.push_back({name, size});
    if (!mesh.axes.empty())
        table.rows.push_back(templateRow({}, std::move(mesh)));
    if (recipe.name == "single" && deviceCount > 1)
        table.rows.push_back(templateRow({}, OpAssignRule{{DeviceId{0}}, {}}));
    TRY(const std::int32_t microBatches, microBatchesOf(graph, batch, recipe));
    TRY(const std::int32_t every, updateEvery(recipe, microBatches));
    if (microBatches > 1)
        table.rows.push_back(templateRow({}, MicroBatchesRule{microBatches, false, every}));
    if (recipe.dp > 1) {
        TRY_VOID(checkBatch(graph, batch, recipe.dp, "data parallelism"));
        SplitStep step{.kind = SplitKind::Dimension,
            .dimension = {.kind = DimensionRef::Kind::Meaning, .name = {}},
            .parts = 0,
            .sizes = {},
            .axis = "dp"};
        table.rows.push_back(templateRow({}, OpTransRule{{std::move(step)}}));
    }
    if (recipe.isBidirectional())
        TRY_VOID(appendBidirectional(model, recipe, costs, table));
    else if (recipe.pp > 1)
        TRY_VOID(appendPipeline(*model.index, recipe, costs, table));
    if (recipe.ep > 1) {
        TRY_VOID(checkBatch(graph, batch, std::int64_t{recipe.dp} * recipe.ep, "expert parallelism"));
        TRY_VOID(appendExpertParallel(model, "ep", recipe.ep, table));
    }
    if (recipe.space)
        TRY_VOID(appendSpatial(model, deviceCount, *recipe.space, table));
    if (recipe.cp > 1)
        TRY_VOID(appendContextParallel(model, deviceCount, "cp", recipe.cp, recipe.ring, table));
    if (recipe.tp > 1)
        TRY_VOID(appendTensorParallel(model, deviceCount, "tp", recipe.tp, table));
    if (recipe.tp > 1 && recipe.sequence)
        TRY_VOID(appendSequenceParallel(model, deviceCount, "tp", recipe.tp, table));
    if (recipe.zero > 0 && recipe.dp > 1) {
        table.rows.push_back(templateRow({.kind = SelectorKind::Weight, .text = "*"},
            OptimizerShardingRule{.stage = recipe.zero, .axis = "dp"}));
    }

    TRY(const Completion completion, completePlan(model, deviceCount, table));
    if (const auto error = firstError(completion))
        return Error{ErrorCode::InvalidInput, recipe.name + ": " + error->message, error->advice, "gallery"};
    return table;
}

} // namespace planloom
