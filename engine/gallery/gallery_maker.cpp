#include "engine/gallery/gallery_maker.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/plan/complete.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/layer_layout.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <charconv>
#include <functional>
#include <set>

namespace planloom {

namespace {

constexpr std::int32_t kMostPerRank = 4; ///< Micro-batches that are chosen, for each rank of a pipeline.

Error wrongSpec(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "gallery"};
}

std::int32_t numberOf(const std::string &text)
{
    std::int32_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Whether the batch of every operator divides into `parts`; the reason if not.
Result<void> checkBatch(
    const Graph &graph, const BatchInfo &batch, std::int64_t parts, const std::string &what)
{
    if (batch.size == 0) {
        return wrongSpec(what + " needs a batch dimension, the model has none"
            + (batch.limitedBy.empty() ? "" : ": " + batch.limitedBy));
    }
    const std::string advice = "use a number of replicas and micro-batches whose product divides the batch";
    if (batch.size % parts != 0)
        return wrongSpec(what + ": the mini-batch has " + counted(batch.size, "sample") + ", which "
                + std::to_string(parts) + " does not divide",
            advice);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const std::int32_t identifier = batch.operatorDimension[i];
        // Behind an operator that needs the whole batch, those with fewer items stay uncut.
        if (op.direction != Direction::Forward || identifier < 0 || !batch.obstacles.empty())
            continue;
        const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(identifier)].size;
        if (size % parts != 0)
            return wrongSpec(what + ": the batch of operator '" + op.name + "' has size "
                    + std::to_string(size) + " (mini-batch " + std::to_string(batch.size) + "), which "
                    + std::to_string(parts) + " does not divide",
                advice);
    }
    return {};
}

} // namespace

std::int32_t GalleryMaker::sizeOf(const std::string &axis) const
{
    const MeshAxis *found = findAxis(m_mesh, axis);
    return std::max(found != nullptr ? found->size : numberOf(axis), 1);
}

Result<void> GalleryMaker::readValues(std::string_view text)
{
    while (!text.empty()) {
        std::size_t comma = text.find(',');
        const GalleryParameter *named = m_entry.find(text.substr(0, text.find('=')));
        const bool mayHaveCommas = named != nullptr
            && (named->kind == GalleryParameterKind::Layout || named->kind == GalleryParameterKind::Modules);
        while (mayHaveCommas && comma != std::string_view::npos) { // what has no '=' belongs to it
            const std::size_t next = text.find(',', comma + 1);
            if (text.substr(comma, next - comma).find('=') != std::string_view::npos)
                break;
            comma = next;
        }
        const std::string_view item = text.substr(0, comma);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
        const std::size_t equals = item.find('=');
        const GalleryParameter *parameter = m_entry.find(item.substr(0, equals));
        if (equals == std::string_view::npos || parameter == nullptr) {
            std::string forms;
            for (const GalleryParameter &each : m_entry.parameters)
                forms += (forms.empty() ? "" : ", ") + formOf(each);
            return wrongSpec("'" + std::string(item.substr(0, 60)) + "' is no parameter of " + m_entry.name,
                forms.empty() ? "it has none" : "parameters: " + forms);
        }
        const std::string_view said = item.substr(equals + 1);
        if ((said == "solver" && parameter->maySolve()) || (said == parameter->fallback)) {
            m_values[parameter->name] = said;
        } else {
            TRY(m_values[parameter->name], valueOf(*parameter, said));
        }
        m_given[parameter->name] = true;
    }
    for (const GalleryParameter &parameter : m_entry.parameters)
        m_values.try_emplace(parameter.name, parameter.fallback);
    m_values[kDevicesWord] = std::to_string(m_deviceCount);
    for (const GalleryNeed &need : m_entry.needs)
        if (auto met = checkNeed(need, m_model); !met) {
            Error error = met.error();
            error.message = m_entry.name + ": " + error.message;
            return error;
        }
    return decideSizes();
}

std::vector<std::pair<std::string, std::string>> GalleryMaker::meshParameters() const
{
    std::vector<std::pair<std::string, std::string>> axes;
    for (const GalleryLine *line : keptLines()) {
        if (!line->text.starts_with("mesh "))
            continue;
        const auto pieces = piecesOf(line->text);
        for (std::size_t i = 1; pieces && i < pieces->size(); ++i) {
            const std::string &before = (*pieces)[i - 1].text; // "mesh dp=", " pp="
            if (!(*pieces)[i].inBraces || !before.ends_with('='))
                continue;
            const std::size_t begin = before.rfind(' ') + 1;
            axes.emplace_back(before.substr(begin, before.size() - 1 - begin), (*pieces)[i].text);
        }
    }
    return axes;
}

/// Numbers in place of "devices", "rest" and "outermost".
Result<void> GalleryMaker::decideSizes()
{
    const auto axes = meshParameters();
    const bool solves =
        std::any_of(axes.begin(), axes.end(), [&](const auto &axis) { return isSolved(axis.second); });
    std::int64_t known = 1;
    bool hasOutermost = false;
    bool spaceIsGiven = false;
    for (const GalleryParameter &parameter : m_entry.parameters) {
        std::string &value = m_values[parameter.name];
        if (value == "devices")
            value = std::to_string(m_deviceCount);
        hasOutermost = hasOutermost || value == "outermost";
        spaceIsGiven = spaceIsGiven || (parameter.fallback == "outermost" && value != "outermost");
    }
    for (const auto &[axis, parameter] : axes)
        known *= std::max(numberOf(m_values[parameter]), 1);
    const std::int64_t rest =
        solves ? 1 : std::max<std::int64_t>(m_deviceCount / std::max<std::int64_t>(known, 1), 1);
    bool taken = false;
    for (const GalleryParameter &parameter : m_entry.parameters) {
        std::string &value = m_values[parameter.name];
        if (value == "rest") {
            value = solves ? "solver" : std::to_string(taken ? 1 : rest);
            taken = true;
        } else if (value == "outermost") {
            const auto meaning = dimensionMeaningNamed(parameter.name);
            const bool is = !spaceIsGiven && !taken && meaning
                && checkNeed({GalleryNeed::Kind::Dimension, *meaning}, m_model);
            value = std::to_string(is ? rest : 1);
            taken = taken || is;
        }
    }
    if (hasOutermost && !spaceIsGiven && !taken)
        return wrongSpec(
            m_entry.name + ": the model's inputs are no images or volumes: nothing has a height or depth",
            "use data-parallel, tensor-parallel or context-parallel");
    if (hasOutermost && !spaceIsGiven && rest < 2)
        return wrongSpec(m_entry.name + " cuts every sample in 1: no devices are left for it",
            "use fewer replicas or more devices");
    for (const auto &[axis, parameter] : axes)
        m_mesh.push_back({axis, std::max(numberOf(m_values[parameter]), 1)});
    m_meshIsSolved = solves;
    if (solves)
        return {};
    TRY_VOID(checkMesh());
    return decideLayout();
}

/// The layout that a line lays the stages out by; nothing without one.
Result<std::optional<LayoutRule>> GalleryMaker::layoutRow() const
{
    for (const GalleryLine *line : keptLines()) {
        if (!line->text.starts_with("layout "))
            continue;
        TRY(const std::string text, textOf(*line));
        if (text.empty())
            continue;
        TRY(const Row row, parseRow(text));
        if (const auto *rule = std::get_if<LayoutRule>(&row.rule))
            return std::optional(*rule);
    }
    return std::optional<LayoutRule>{};
}

/// A layout says how many stages each rank has.
Result<void> GalleryMaker::decideLayout()
{
    TRY(const auto layout, layoutRow());
    if (!layout)
        return {};
    TRY(const auto stages, parseLayout(layout->layout));
    const auto count = static_cast<std::int32_t>(stages.size());
    const std::int32_t ranks = sizeOf(layout->axis);
    const std::string found = "the layout has " + counted(count, "stage");
    if (count % ranks != 0 || (ranks == 1 && count > 1))
        return wrongSpec(m_entry.name + ": " + found + ", the pipeline " + counted(ranks, "rank"),
            "give every rank as many stages");
    for (const char *name : {"schedule", "interleave"}) {
        const auto value = m_values.find(name);
        if (value == m_values.end())
            continue;
        const auto schedule = scheduleNamed(value->second);
        if (schedule && runsInWaves(*schedule))
            return wrongSpec(m_entry.name + ": a layout deals stages out to ranks in turn, schedule "
                    + value->second + " runs them in waves",
                "leave the layout out, or use 1f1b");
        if (schedule || name == std::string_view("schedule"))
            continue;
        if (m_given.contains(name) && numberOf(value->second) != count / ranks)
            return wrongSpec(m_entry.name + ": " + found + " for " + counted(ranks, "rank") + ", not "
                    + value->second + " for each",
                "leave interleave out: the layout says it");
        value->second = std::to_string(count / ranks);
    }
    return {};
}

Result<void> GalleryMaker::checkMesh() const
{
    if (m_mesh.empty())
        return {};
    std::int64_t needed = 1;
    std::string product;
    for (const MeshAxis &axis : m_mesh) {
        needed *= axis.size;
        product += (product.empty() ? "" : " x ") + axis.name + "=" + std::to_string(axis.size);
    }
    if (needed == m_deviceCount)
        return {};
    std::string names;
    for (const auto &[axis, parameter] : meshParameters())
        names += (names.empty() ? "" : ", ") + parameter;
    return wrongSpec(m_entry.name + " needs " + counted(needed, "device") + " (" + product
            + "), the cluster has " + std::to_string(m_deviceCount),
        "make the product of " + names + " the number of devices");
}

bool GalleryMaker::holds(const GalleryCondition &condition) const
{
    const auto found = m_values.find(condition.parameter);
    const std::string value = found == m_values.end() ? std::string{} : found->second;
    using Kind = GalleryCondition::Kind;
    switch (condition.kind) {
    case Kind::IsOn:
        return value != "0" && value != "solver";
    case Kind::Is:
        return value == condition.value;
    case Kind::IsNot:
        return value != condition.value;
    case Kind::More:
        return numberOf(value) > numberOf(condition.value);
    }
    return false;
}

std::vector<const GalleryLine *> GalleryMaker::keptLines() const
{
    std::vector<const GalleryLine *> kept;
    bool lastHeld = true;
    for (const GalleryLine &line : m_entry.lines) {
        const bool held = std::all_of(line.conditions.begin(), line.conditions.end(),
            [&](const GalleryCondition &condition) { return holds(condition); });
        const bool takes = held && !(line.otherwise && lastHeld);
        // Behind an `otherwise` that was left out, another one is too.
        lastHeld = line.otherwise ? lastHeld || takes : takes;
        if (takes)
            kept.push_back(&line);
    }
    return kept;
}

Error GalleryMaker::at(const GalleryLine &line, Error error) const
{
    error.message = m_entry.name + ": " + error.message;
    if (!m_entry.file.empty())
        error.advice += (error.advice.empty() ? "" : "; ")
            + ("see line " + std::to_string(line.line) + " of " + m_entry.file);
    error.where = "gallery";
    return error;
}

/// The text with its parameters' values and sets; empty if it uses what is left to the solver, or a set
/// without operators.
Result<std::string> GalleryMaker::textOf(const GalleryLine &line) const
{
    TRY(const auto pieces, piecesOf(line.text));
    std::string text;
    for (const GalleryPiece &piece : pieces) {
        if (!piece.inBraces) {
            text += piece.text;
            continue;
        }
        if (const auto found = m_values.find(piece.text); found != m_values.end()) {
            if (found->second == "solver")
                return std::string{};
            const GalleryParameter *parameter = m_entry.find(piece.text);
            const bool isQuoted = parameter != nullptr && parameter->kind == GalleryParameterKind::Layout;
            text += isQuoted ? '"' + found->second + '"' : found->second;
            continue;
        }
        TRY(const FoundSet set, readFoundSet(piece.text));
        const auto members = membersOf(set, m_model);
        if (members.empty())
            return std::string{};
        text += "(" + toString(selectAny(selectorsByName(*m_model.index, members))) + ")";
    }
    return text;
}

/// Steps over axes of one device go, and a row without any left with them.
std::optional<Row> GalleryMaker::withoutLoneAxes(Row row) const
{
    if (auto *mesh = std::get_if<MeshRule>(&row.rule)) {
        std::erase_if(mesh->axes, [](const MeshAxis &axis) { return axis.size == 1; });
        if (mesh->axes.empty())
            return std::nullopt;
    } else if (auto *split = std::get_if<OpTransRule>(&row.rule)) {
        std::erase_if(
            split->steps, [&](const SplitStep &step) { return !step.axis.empty() && isAlone(step.axis); });
        if (split->steps.empty())
            return std::nullopt;
    } else if (auto *sharding = std::get_if<OptimizerShardingRule>(&row.rule)) {
        std::vector<std::string> named = sharding->moreAxes;
        named.push_back(sharding->axis);
        for (const std::string &axis : named)
            if (!axis.empty() && isAlone(axis)) {
                *sharding = withoutAxis(*sharding, axis);
                if (sharding->axis.empty())
                    return std::nullopt;
            }
    } else if (const auto *ring = std::get_if<RingRule>(&row.rule)) {
        if (isAlone(ring->axis))
            return std::nullopt;
    } else if (const auto *counts = std::get_if<MicroBatchesRule>(&row.rule)) {
        if (counts->count == 1 && !counts->whole)
            return std::nullopt;
    } else if (const auto *layout = std::get_if<LayoutRule>(&row.rule)) {
        if (!layout->axis.empty() && isAlone(layout->axis))
            return std::nullopt;
    } else if (const auto *coshard = std::get_if<CoshardRule>(&row.rule)) {
        if (coshard->parts < 2)
            return std::nullopt;
    } else if (const auto *place = std::get_if<OpAssignRule>(&row.rule)) {
        if (std::any_of(place->coordinates.begin(), place->coordinates.end(),
                [&](const AxisCoordinate &each) { return isAlone(each.axis); }))
            return std::nullopt;
    }
    return row;
}

Result<void> GalleryMaker::survey()
{
    TRY(const auto layout, layoutRow());
    if (layout && !isAlone(layout->axis)) {
        TRY(const auto stages, parseLayout(layout->layout));
        m_ranks = sizeOf(layout->axis);
        m_times = static_cast<std::int32_t>(stages.size()) / m_ranks;
    }
    for (const GalleryLine *line : keptLines()) {
        if (line->kind == GalleryLine::Kind::Find) {
            TRY(const std::string text, textOf(*line));
            const auto found = readFindLine(text);
            if (!found || found->axis.empty() || isAlone(found->axis))
                continue;
            const std::int32_t size = sizeOf(found->axis);
            using Kind = FindLine::Kind;
            if (found->kind == Kind::Stages || found->kind == Kind::Passes || found->kind == Kind::BothWays) {
                m_ranks = size;
                m_times = found->times;
                m_batchParts *= found->kind == Kind::BothWays ? 2 : 1;
            } else if (found->kind == Kind::Experts) {
                m_batchParts *= size;
            }
            continue;
        }
        if (!line->text.starts_with("split "))
            continue;
        TRY(const std::string text, textOf(*line));
        if (text.empty())
            continue;
        const auto row = parseRow(text);
        const auto *rule = row ? std::get_if<OpTransRule>(&row->rule) : nullptr;
        for (std::size_t s = 0; rule != nullptr && s < rule->steps.size(); ++s)
            if (isBatch(rule->steps[s]) && !isAlone(rule->steps[s].axis)
                && row->selector.kind == SelectorKind::All)
                m_batchParts *= sizeOf(rule->steps[s].axis);
    }
    return m_batchParts > 1 ? checkBatch(*m_model.graph, *m_model.batch, m_batchParts, m_entry.name)
                            : Result<void>{};
}

Result<void> GalleryMaker::decideMicroBatches()
{
    const Graph &graph = *m_model.graph;
    const BatchInfo &batch = *m_model.batch;
    for (const GalleryParameter &parameter : m_entry.parameters) {
        std::string &value = m_values[parameter.name];
        if (parameter.kind != GalleryParameterKind::MicroBatches || value == "solver")
            continue;
        if (value == "chosen") {
            value = "1";
            const std::int64_t most =
                std::min<std::int64_t>(batch.mostMicroBatches, std::int64_t{kMostPerRank} * m_ranks);
            for (std::int64_t count = most; m_ranks > 1 && count > 1; --count) {
                if (m_times > 1 && count % m_ranks != 0)
                    continue;
                if (batch.size % count == 0 && checkBatch(graph, batch, count * m_batchParts, "")) {
                    value = std::to_string(count);
                    break;
                }
            }
            continue;
        }
        const std::int32_t count = numberOf(value);
        if (count <= 1 || batch.size <= 1)
            continue; // nothing to cut: every micro-batch is a whole batch
        if (count > batch.mostMicroBatches)
            return wrongSpec("no more than " + counted(batch.mostMicroBatches, "micro-batch") + " can be made"
                + (batch.limitedBy.empty() ? "" : ": " + batch.limitedBy));
        TRY_VOID(checkBatch(graph, batch, count * m_batchParts, "micro-batches"));
    }
    // How many micro-batches make an update: PipeDream-2BW (arXiv:2006.09503, section 3.1) takes at least as
    // many as there are stages, so that the weights that a stage needs next are made in time, and two
    // versions do.
    for (const GalleryParameter &parameter : m_entry.parameters) {
        if (parameter.kind != GalleryParameterKind::Updates)
            continue;
        const auto all = std::find_if(m_entry.parameters.begin(), m_entry.parameters.end(),
            [](const GalleryParameter &each) { return each.kind == GalleryParameterKind::MicroBatches; });
        const std::int32_t count = all == m_entry.parameters.end() ? 1 : numberOf(m_values[all->name]);
        std::string &value = m_values[parameter.name];
        if (value == "chosen") {
            std::int32_t every = std::max(std::min(m_ranks, count), 1);
            while (count % every != 0)
                ++every;
            value = std::to_string(every);
        } else if (numberOf(value) < 1 || count % numberOf(value) != 0) {
            return wrongSpec(
                "updates every " + value + " micro-batches do not divide " + std::to_string(count),
                "use a divisor of the number of micro-batches");
        }
    }
    return {};
}

/// The row for those operators that can be cut so.
Result<void> GalleryMaker::appendDividing(const Row &row, ConstraintTable &table) const
{
    const RowSetting rows{m_model, m_deviceCount, planMeaning(m_model, m_deviceCount, table).mesh};
    const auto legal = [&](OperatorId op, const std::vector<Split> &splits) {
        return checkPartition(m_model.graph->at(op), Partition{splits}).has_value();
    };
    std::function<bool(OperatorId)> passes = [](OperatorId) { return false; };
    std::function<bool(OperatorId)> takes;
    std::string what = print(row.rule);
    if (const auto *split = std::get_if<OpTransRule>(&row.rule)) {
        // What a single step passes by is not asked; every step must be possible.
        passes = [&rows, split](OperatorId op) {
            return std::all_of(split->steps.begin(), split->steps.end(), [&](const SplitStep &step) {
                const auto made = splitOf(rows, op, step);
                return made && made->parts == 0;
            });
        };
        takes = [&rows, split, &legal](OperatorId op) {
            std::vector<Split> splits;
            for (const SplitStep &step : split->steps) {
                auto made = splitOf(rows, op, step);
                if (!made || made->parts < 2)
                    return false;
                splits.push_back(*std::move(made));
            }
            return legal(op, splits);
        };
    } else if (const auto *coshard = std::get_if<CoshardRule>(&row.rule)) {
        const auto cutOf = [&rows, coshard](OperatorId op) {
            return splitOf(rows, op,
                {.kind = SplitKind::Dimension, .dimension = coshard->dimension, .parts = coshard->parts});
        };
        passes = [cutOf](OperatorId op) {
            const auto made = cutOf(op);
            return made && made->parts == 0;
        };
        takes = [cutOf, &legal](OperatorId op) {
            const auto made = cutOf(op);
            return made && made->parts > 1 && legal(op, {*made});
        };
    } else if (const auto *ring = std::get_if<RingRule>(&row.rule)) {
        const MeaningSplit sequence(rows, DimensionMeaning::Sequence, ring->axis);
        takes = [&rows, ring, sequence](OperatorId op) {
            const auto meaning = RuleMeaning<RingRule>::of(rows, *ring, op);
            return sequence.divides(op) && meaning && *meaning && !(*meaning)->ring.empty();
        };
        what = "keys and values that can go round: " + what;
    } else {
        return wrongSpec("'where it divides' goes with split, coshard and ring rows alone");
    }
    if (appendWhere(*m_model.index, row.selector, row.rule, passes, takes, table))
        return {};
    bool any = false;
    for (const OperatorId op : m_model.index->select(row.selector))
        any = any || (m_model.graph->at(op).direction == Direction::Forward && !passes(op));
    const auto *split = std::get_if<OpTransRule>(&row.rule);
    if (split != nullptr && split->steps.front().dimension.kind == DimensionRef::Kind::Meaning) {
        const std::string meaning = nameOf(split->steps.front().dimension.meaning);
        return wrongSpec(any ? "no operator has a dimension '" + meaning + "' that "
                    + std::to_string(sizeOf(split->steps.front().axis)) + " divides"
                             : "nothing in the model has a " + meaning,
            "use other numbers, or another plan of the gallery");
    }
    return wrongSpec(
        (any ? "nothing can be cut so: " : "nothing in the model has what is to be cut: ") + what,
        "use other numbers, or another plan of the gallery");
}

Result<void> GalleryMaker::append(
    const GalleryLine &line, const FindSetting &setting, ConstraintTable &table) const
{
    TRY(const std::string text, textOf(line));
    if (text.empty())
        return {};
    if (line.kind == GalleryLine::Kind::Find) {
        auto found = readFindLine(text);
        if (!found)
            return at(line, found.error());
        return !found->axis.empty() && isAlone(found->axis) ? Result<void>{}
                                                            : appendFound(*found, setting, table);
    }
    auto parsed = parseRow(text);
    if (!parsed)
        return at(line, parsed.error());
    std::optional<Row> row = withoutLoneAxes(*std::move(parsed));
    if (!row)
        return {};
    row->origin = RowOrigin::Template;
    if (line.kind == GalleryLine::Kind::WhereItDivides) {
        auto done = appendDividing(*row, table);
        return done ? Result<void>{} : Result<void>(at(line, done.error()));
    }
    if (std::holds_alternative<MeshRule>(row->rule) && m_meshIsSolved)
        return {};
    for (Row &each :
        withUnevenParts(m_model, *std::move(row), [this](const auto &axis) { return sizeOf(axis); }))
        table.rows.push_back(std::move(each));
    return {};
}

Result<GalleryPlan> GalleryMaker::make(const OperatorCosts &costs)
{
    if (m_meshIsSolved)
        m_mesh.clear();
    TRY_VOID(survey());
    TRY_VOID(decideMicroBatches());
    GalleryPlan plan;
    for (const GalleryParameter &parameter : m_entry.parameters)
        if (isSolved(parameter.name))
            plan.solved.push_back(parameter.name);
    const FindSetting setting{m_model, m_deviceCount, costs, m_mesh};
    for (const GalleryLine *line : keptLines())
        TRY_VOID(append(*line, setting, plan.table));
    TRY(const Completion completion, completePlan(m_model, m_deviceCount, plan.table));
    if (const auto error = firstError(completion))
        return Error{ErrorCode::InvalidInput, m_entry.name + ": " + error->message, error->advice, "gallery"};
    return plan;
}

std::vector<GalleryValue> GalleryMaker::values() const
{
    std::vector<GalleryValue> values;
    for (const GalleryParameter &parameter : m_entry.parameters)
        values.push_back({parameter.name, m_values.at(parameter.name), m_given.contains(parameter.name)});
    return values;
}

} // namespace planloom
