#include "engine/interop/torch/modules/plan_words.h"

#include "engine/graph/operators/operator_kind.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// The identifier that leads dimension `dimension`, where it can be cut; -1 where it can't.
std::int32_t leadOf(const Annotation &annotation, const TensorTerms &terms, std::int32_t dimension)
{
    for (const std::int32_t factor : terms.terms[at(dimension)].factors)
        if (annotation.dimensions[at(factor)].size != 1)
            return factor;
    return -1;
}

/// The dimension that `identifier` leads; -1 where it leads none.
std::int32_t ledBy(const Annotation &annotation, const TensorTerms &terms, std::int32_t identifier)
{
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(terms.terms.size()); ++i)
        if (leadOf(annotation, terms, i) == identifier)
            return i;
    return -1;
}

bool isCut(const TensorPlacement &placement)
{
    return placement.kind == TensorPlacement::Kind::Shard;
}

/// Follows tensors along one axis, operator by operator.
class TensorReader
{
public:
    TensorReader(const WordsSource &source, const std::string &axis, ReadWords &read)
        : m_source(source)
        , m_graph(*source.plan.graph)
        , m_axis(axis)
        , m_read(read)
        , m_uses(usesOf(m_graph))
        , m_laid(m_graph.tensors.size())
        , m_inLoss(m_graph.tensors.size())
    {
    }

    std::vector<Laid> run()
    {
        for (std::int32_t o = 0; o < static_cast<std::int32_t>(m_graph.operators.size()); ++o)
            if (m_graph.operators[at(o)].direction == Direction::Forward)
                follow(OperatorId{o});
        return std::move(m_laid);
    }

private:
    void refuse(OperatorId op, std::string why) { m_read.refused.push_back({op, m_axis, std::move(why)}); }

    TensorPlacement wanted(OperatorId id, std::size_t slot) const
    {
        const Annotation &annotation = m_graph.at(id).annotation;
        return placementOf(annotation, annotation.inputs[slot], m_source.splitOf(id, m_axis), false);
    }
    TensorPlacement made(OperatorId id, std::size_t slot) const
    {
        const Annotation &annotation = m_graph.at(id).annotation;
        return placementOf(annotation, annotation.outputs[slot], m_source.splitOf(id, m_axis), true);
    }
    bool isActivation(TensorId id) const
    {
        return id.valid() && m_graph.at(id).role != TensorRole::Weight
            && m_graph.at(id).role != TensorRole::Buffer;
    }

    void follow(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        const Split *const split = m_source.splitOf(id, m_axis);
        if (split != nullptr && !split->sizes.empty())
            refuse(id, "its parts are not of one size");
        if (isOfLoss(op))
            return followLoss(op);
        const std::string module = m_source.moduleOf(id);
        if (!module.empty())
            return followModule(id, module, split);
        followBetween(id, split);
    }

    /// What is made of statistics of classes that are cut is PyTorch's own affair: `loss_parallel`.
    bool isOfLoss(const Operator &op) const
    {
        return op.kind == OperatorKind::ClassStatistics || op.kind == OperatorKind::ClassLoss
            || op.kind == OperatorKind::CountValid
            || std::any_of(op.inputs.begin(), op.inputs.end(),
                [this](TensorId input) { return input.valid() && m_inLoss[at(input)]; });
    }

    void followLoss(const Operator &op)
    {
        const OperatorId id{static_cast<std::int32_t>(&op - m_graph.operators.data())};
        if (op.kind == OperatorKind::ClassStatistics) {
            const Laid &logits = m_laid[at(op.inputs.front())];
            if (logits.placement != wanted(id, 0))
                refuse(id, "its logits lie otherwise than it reads them");
            const bool isByClasses = isCut(logits.placement) && logits.placement.dimension == -1;
            if (isCut(logits.placement) && !isByClasses)
                refuse(id, "loss_parallel is of logits that are cut along their classes");
            m_read.words.lossParallel = m_read.words.lossParallel || isByClasses;
        }
        for (const TensorId output : op.outputs)
            if (output.valid())
                m_inLoss[at(output)] = true;
    }

    /// An operator that reads weights: its module gets a style, where it needs one.
    void followModule(OperatorId id, const std::string &module, const Split *split)
    {
        const Operator &op = m_graph.at(id);
        std::size_t main = op.inputs.size();
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
            if (op.inputs[i].valid() && m_graph.at(op.inputs[i]).role != TensorRole::Weight
                && main == op.inputs.size())
                main = i;
        if (main == op.inputs.size())
            return refuse(id, "it reads weights alone");
        if (split != nullptr && split->kind == SplitKind::Value)
            return refuse(id, "its value is divided");
        const Laid &given = m_laid[at(op.inputs[main])];
        ModuleStyle style;
        style.from = given.placement;
        style.to = wanted(id, main);
        style.made = made(id, 0);
        style.given = handedOn(op.outputs.front(), style.made);
        const bool isStyled =
            isCut(style.from) || isCut(style.to) || isCut(style.made) || !style.made.isWhole();
        const bool isEmbedding = op.kind == OperatorKind::Embedding;
        style.staysDTensor = isStyled && isCut(style.given)
            && ((style.given.dimension != -1 && (given.isDTensor || isEmbedding || !style.made.isWhole()))
                || (style.given.dimension == -1 && reachesLoss(op.outputs.front())));
        if (isStyled) {
            chooseKind(id, module, split, style);
            if (style.kind == ModuleStyle::Kind::Sequence)
                style.staysDTensor = given.isDTensor;
        }
        addOutput(op, module, isStyled, style);
        if (isStyled)
            addStyle(id, module, style);
        for (std::size_t i = 0; i < op.outputs.size(); ++i)
            if (op.outputs[i].valid())
                m_laid[at(op.outputs[i])] = {i == 0 ? style.given : made(id, i), style.staysDTensor};
    }

    void addStyle(OperatorId id, const std::string &module, const ModuleStyle &style)
    {
        const auto [there, isNew] = m_read.words.styles.emplace(module, style);
        if (!isNew && there->second != style)
            refuse(id, "its module is used in two ways");
    }

    /// The output's layout where the style itself has no word for it, or where several read it at once.
    void addOutput(const Operator &op, const std::string &module, bool isStyled, ModuleStyle &style)
    {
        const bool isOwn = isStyled && style.kind != ModuleStyle::Kind::Sequence;
        std::size_t readers = 0;
        bool areStyled = true;
        for (const OperatorId reader : m_uses.consumers[at(op.outputs.front())])
            if (m_graph.at(reader).direction == Direction::Forward) {
                ++readers;
                areStyled = areStyled && !m_source.moduleOf(reader).empty()
                    && m_source.splitOf(reader, m_axis) != nullptr
                    && m_source.splitOf(reader, m_axis)->kind == SplitKind::Dimension;
            }
        const bool isForSeveral = areStyled && readers > 1 && style.given.isWhole();
        if (!isOwn && (style.made != style.given || isForSeveral)) {
            m_read.words.outputs[module] = {style.made, style.given};
            style.staysDTensor = isForSeveral || style.staysDTensor;
        }
    }

    void chooseKind(OperatorId id, const std::string &module, const Split *split, ModuleStyle &style)
    {
        const Operator &op = m_graph.at(id);
        const auto known = m_source.classes.find(module);
        const std::string name = known == m_source.classes.end() ? std::string{} : known->second;
        const bool isLinear =
            name.empty() ? op.kind == OperatorKind::Linear : name.ends_with(".linear.Linear");
        const bool isEmbedding =
            name.empty() ? op.kind == OperatorKind::Embedding : name.ends_with(".sparse.Embedding");
        style.kind = ModuleStyle::Kind::Cut;
        style.parameters = cutsOf(id, split);
        const bool isPacked = std::any_of(style.parameters.begin(), style.parameters.end(),
            [](const ParameterCut &cut) { return cut.groups > 1; });
        if (style.parameters.empty()) {
            if (!isLinear && !isEmbedding && style.from == style.to && style.to == style.made)
                style.kind = ModuleStyle::Kind::Sequence;
            return;
        }
        if (isPacked || (!isLinear && !isEmbedding))
            return;
        const std::int32_t dimension = style.parameters.front().dimension;
        style.kind = (dimension == 0) == isLinear ? ModuleStyle::Kind::Colwise : ModuleStyle::Kind::Rowwise;
        const bool isUsual = style.kind == ModuleStyle::Kind::Colwise
            ? style.to.isWhole() && style.made == TensorPlacement{TensorPlacement::Kind::Shard, -1}
            : !style.made.isWhole() && !isCut(style.made)
                && (isEmbedding ? style.to.isWhole()
                                : style.to == TensorPlacement{TensorPlacement::Kind::Shard, -1});
        if (isUsual)
            style.parameters.clear();
        else
            style.kind = ModuleStyle::Kind::Cut;
    }

    /// How its weights are cut, in the shapes that their files know.
    std::vector<ParameterCut> cutsOf(OperatorId id, const Split *split)
    {
        std::vector<ParameterCut> cuts;
        const Operator &op = m_graph.at(id);
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            if (!op.inputs[i].valid() || m_graph.at(op.inputs[i]).role != TensorRole::Weight)
                continue;
            const Tensor &weight = m_graph.at(op.inputs[i]);
            const TensorPlacement placement =
                placementOf(op.annotation, op.annotation.inputs[i], split, false);
            if (!isCut(placement))
                continue;
            if (weight.filePart)
                refuse(id, "a parameter of it is a part of one");
            const std::string &name = nameInFiles(weight);
            ParameterCut cut{name.substr(name.rfind('.') + 1), placement.dimension, 1};
            if (cut.dimension < 0)
                cut.dimension += static_cast<std::int32_t>(weight.type.shape.size());
            if (!weight.fileShape.empty())
                regroup(id, weight, cut);
            cuts.push_back(std::move(cut));
        }
        return cuts;
    }

    /// From the graph's dimensions to the file's, of which one holds several.
    void regroup(OperatorId id, const Tensor &weight, ParameterCut &cut)
    {
        std::size_t own = 0;
        for (std::size_t file = 0; file < weight.fileShape.size(); ++file) {
            std::int64_t before = 1;
            while (own < weight.type.shape.size() && before < weight.fileShape[file]) {
                if (own == at(cut.dimension)) {
                    cut.dimension = static_cast<std::int32_t>(file);
                    cut.groups = before;
                    return;
                }
                before *= weight.type.shape[own++];
            }
        }
        refuse(id, "its weight has other dimensions in PyTorch");
    }

    /// How a module had best hand on what it makes: as those between modules read it, else as all styles do.
    TensorPlacement handedOn(TensorId tensor, const TensorPlacement &made) const
    {
        std::optional<TensorPlacement> between;
        std::optional<TensorPlacement> styled;
        bool areAlike = true;
        for (const OperatorId reader : m_uses.consumers[at(tensor)]) {
            const Operator &op = m_graph.at(reader);
            if (op.direction != Direction::Forward
                || (isOfLoss(op) && op.kind != OperatorKind::ClassStatistics))
                continue;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                if (op.inputs[slot] != tensor)
                    continue;
                const TensorPlacement placement = wanted(reader, slot);
                if (m_source.moduleOf(reader).empty())
                    between = placement;
                areAlike = areAlike && (!styled || *styled == placement);
                styled = placement;
            }
        }
        if (between)
            return *between;
        if (styled && areAlike)
            return *styled;
        return made.kind == TensorPlacement::Kind::Partial ? TensorPlacement{} : made;
    }

    /// Whether logits get to the loss without another module.
    bool reachesLoss(TensorId tensor) const
    {
        for (const OperatorId reader : m_uses.consumers[at(tensor)]) {
            const Operator &op = m_graph.at(reader);
            if (op.direction != Direction::Forward)
                continue;
            if (op.kind == OperatorKind::ClassStatistics)
                return true;
            if (m_source.moduleOf(reader).empty() && !op.outputs.empty() && op.outputs.front().valid()
                && reachesLoss(op.outputs.front()))
                return true;
        }
        return false;
    }

    /// What the module's own code computes between modules: on what it is given, as it lies.
    void followBetween(OperatorId id, const Split *split)
    {
        const Operator &op = m_graph.at(id);
        std::int32_t identifier = -1;
        bool isDTensor = false;
        bool isPlain = false;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot].valid())
                continue;
            const Laid &given = m_laid[at(op.inputs[slot])];
            const bool isNumber = m_graph.at(op.inputs[slot]).type.shape.empty();
            isDTensor = isDTensor || given.isDTensor;
            isPlain = isPlain || (!given.isDTensor && !isNumber);
            if (given.placement != wanted(id, slot))
                return refuse(id,
                    "it reads " + m_graph.at(op.inputs[slot]).name + " as " + textOf(wanted(id, slot))
                        + ", which is handed on as " + textOf(given.placement));
            if (isCut(given.placement)) {
                const TensorTerms &terms = op.annotation.inputs[slot];
                const std::int32_t dimension = given.placement.dimension < 0
                    ? static_cast<std::int32_t>(terms.terms.size()) - 1
                    : given.placement.dimension;
                identifier = leadOf(op.annotation, terms, dimension);
            }
        }
        if (isDTensor && isPlain)
            return refuse(id, "it mixes what is cut along the sequence with what is not");
        const bool isFollowed = split == nullptr || split->kind == SplitKind::Replicate
            ? identifier < 0
            : split->kind == SplitKind::Dimension && split->dimension == identifier;
        if (!isFollowed)
            return refuse(id, "no module's style says how it is cut");
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (!op.outputs[slot].valid())
                continue;
            m_laid[at(op.outputs[slot])] = {made(id, slot), isDTensor};
            if (made(id, slot).kind == TensorPlacement::Kind::Partial)
                refuse(id, "it makes summands, which no module's output joins");
        }
        if (identifier >= 0 && !isDTensor)
            addLocalSizes(op, identifier, split->parts);
    }

    /// Sizes that the module's code may have from an attribute: those of cut dimensions.
    void addLocalSizes(const Operator &op, std::int32_t identifier, std::int32_t parts)
    {
        if (op.kind != OperatorKind::Split && op.kind != OperatorKind::Reshape
            && op.kind != OperatorKind::Expand)
            return;
        auto &sizes = m_read.words.localSizes[m_source.model.index->pathOf(op.scope)];
        const auto add = [&](const TensorTerms &terms) {
            const std::int32_t dimension = ledBy(op.annotation, terms, identifier);
            if (dimension < 0)
                return;
            std::int64_t whole = 1;
            for (const std::int32_t factor : terms.terms[at(dimension)].factors)
                whole *= op.annotation.dimensions[at(factor)].size;
            sizes[whole] = whole / parts;
        };
        std::for_each(op.annotation.outputs.begin(), op.annotation.outputs.end(), add);
    }

    const WordsSource &m_source;
    const Graph &m_graph;
    const std::string &m_axis;
    ReadWords &m_read;
    Uses m_uses{};
    std::vector<Laid> m_laid{}; ///< By tensor.
    std::vector<bool> m_inLoss{}; ///< By tensor.
};

} // namespace

std::string textOf(const TensorPlacement &placement)
{
    switch (placement.kind) {
    case TensorPlacement::Kind::Replicate:
        return "Replicate()";
    case TensorPlacement::Kind::Shard:
        return "Shard(" + std::to_string(placement.dimension) + ")";
    case TensorPlacement::Kind::Partial:
        return "Partial()";
    }
    return {};
}

TensorPlacement placementOf(
    const Annotation &annotation, const TensorTerms &terms, const Split *split, bool isOutput)
{
    if (split == nullptr || split->kind == SplitKind::Replicate || terms.opaque)
        return {};
    if (split->kind == SplitKind::Value)
        return {TensorPlacement::Kind::Partial, 0};
    const std::int32_t dimension = ledBy(annotation, terms, split->dimension);
    if (dimension >= 0)
        return {TensorPlacement::Kind::Shard,
            dimension > 0 && dimension + 1 == static_cast<std::int32_t>(terms.terms.size()) ? -1 : dimension};
    const bool isSum = isOutput && annotation.dimensions[at(split->dimension)].mark == DimensionMark::Reduce;
    return isSum ? TensorPlacement{TensorPlacement::Kind::Partial, 0} : TensorPlacement{};
}

std::vector<Laid> readTensorWords(const WordsSource &source, const std::string &axis, ReadWords &read)
{
    return TensorReader(source, axis, read).run();
}

} // namespace planloom
