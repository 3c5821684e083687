#include "engine/gallery/tensor_parallel_region.h"

#include "engine/graph/annotation/annotation.h"
#include "engine/graph/annotation/inner_identifier.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/dimensions/dimension_classes.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace planloom {

namespace {

constexpr int kMostRetries = 48;
constexpr int kMostUnits = 6; ///< That are tried for a region.
/// Elements of each part from which on the largest of uneven ones is hardly above the mean.
constexpr std::int64_t kLargePart = 128;

std::optional<std::size_t> leadingPosition(
    const Annotation &annotation, const TensorTerms &terms, std::int32_t identifier)
{
    for (std::size_t t = 0; t < terms.terms.size(); ++t) {
        if (disjointFactor(annotation, terms.terms[t]) == identifier)
            return t;
    }
    return std::nullopt;
}

bool isProduct(const Operator &op)
{
    return categoryOf(op.kind) == OperatorCategory::Product || op.kind == OperatorKind::Embedding;
}

/// What the search knows of the graph, and what earlier regions decided.
struct Search {
    const SelectorIndex &index;
    const Graph &graph;
    std::int32_t parts = 1;
    UnevenParts uneven = UnevenParts::Any;
    std::vector<bool> trained{}; ///< By tensor: depends on a weight, so that its gradient matters.
    std::vector<std::int32_t> identifier{}; ///< By operator: decided by earlier regions.
    std::vector<std::int32_t> cut{}; ///< By tensor: its dimension cut by earlier regions; -1 if whole.
    std::vector<std::int64_t> unitsOfOperator{}; ///< `Region::units` of what cuts it.
    std::vector<std::int64_t> unitsOfTensor{};

    bool hasWeight(const Operator &op) const
    {
        return std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id.valid() && graph.at(id).role == TensorRole::Weight; });
    }
    /// What a product makes by its weight alone, and can be cut along; -1 if there is nothing.
    std::int32_t columnOf(const Operator &op) const
    {
        for (const std::int32_t identifier : splittableDimensions(op.annotation)) {
            const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(identifier)];
            bool inWeight = false;
            bool inOther = false;
            for (std::size_t s = 0; s < op.inputs.size(); ++s)
                if (op.inputs[s].valid() && mentions(op.annotation.inputs[s], identifier))
                    (graph.at(op.inputs[s]).role == TensorRole::Weight ? inWeight : inOther) = true;
            if (inWeight && !inOther && dimension.mark == DimensionMark::Spatial
                && dimension.size % parts == 0)
                return identifier;
        }
        return -1;
    }
    OperatorId makerOf(TensorId tensor) const
    {
        for (const OperatorId op : index.uses().producers[static_cast<std::size_t>(tensor.index)]) {
            if (graph.at(op).direction == Direction::Forward)
                return op;
        }
        return {};
    }
};

/// One attempt at a region: everything that one cut entails.
class Region
{
public:
    /// @param units  0 for equal parts; else how many things are dealt out in rounded shares, each of which
    /// is
    ///   as many elements of every identifier that the region cuts
    Region(const Search &search, bool mayslice, const std::set<TensorId> &whole, std::int64_t units)
        : m_search(search)
        , m_maySlice(mayslice)
        , m_whole(whole)
        , m_units(units)
    {
    }

    /// Splits `op` on `identifier` and all that follows from it. False if it can't be; then `obstacle` and
    /// `blamed`.
    bool grow(OperatorId op, std::int32_t identifier);

    const std::map<OperatorId, std::int32_t> &identifiers() const { return m_identifier; }
    const std::map<OperatorId, std::int32_t> &gathered() const { return m_gathered; }
    const std::map<TensorId, std::int32_t> &cuts() const { return m_cut; }
    int rows() const { return m_rows; }
    int columns() const { return m_columns; }
    int products() const { return m_products; }
    int losses() const { return m_losses; }
    const std::string &obstacle() const { return m_obstacle; }
    TensorId blamed() const { return m_blamed; }
    std::int64_t units() const { return m_units; }
    /// Units with which what did not divide would; 0 where there are none.
    std::int64_t otherUnits() const { return m_otherUnits; }

private:
    bool decide(OperatorId op, std::int32_t identifier);
    bool decideInputs(OperatorId op, std::int32_t identifier);
    bool setCut(TensorId tensor, std::int32_t dimension);
    bool needCut(TensorId tensor, std::int32_t dimension);
    bool isShared(const Operator &op, std::int32_t identifier, std::size_t slot) const;
    bool fits(OperatorId id, std::int32_t identifier);
    bool isCutAlike(std::int64_t theirs);
    void gather(TensorId tensor);
    bool follow(TensorId tensor);
    bool fail(const std::string &reason, TensorId blamed = {})
    {
        if (m_obstacle.empty())
            m_obstacle = reason;
        if (!m_blamed.valid())
            m_blamed = blamed.valid() ? blamed : m_followed;
        return false;
    }
    std::int32_t cutOf(TensorId tensor) const
    {
        const auto found = m_cut.find(tensor);
        return found != m_cut.end() ? found->second : m_search.cut[static_cast<std::size_t>(tensor.index)];
    }
    /// Units of what cuts a tensor.
    std::int64_t unitsOf(TensorId tensor) const
    {
        return m_cut.contains(tensor) ? m_units
                                      : m_search.unitsOfTensor[static_cast<std::size_t>(tensor.index)];
    }

    const Search &m_search;
    bool m_maySlice = false;
    const std::set<TensorId> &m_whole; ///< Tensors that must not be cut.
    std::int64_t m_units = 0;
    std::int64_t m_otherUnits = 0;
    std::map<OperatorId, std::int32_t> m_identifier{};
    std::map<TensorId, std::int32_t> m_cut{};
    std::map<OperatorId, std::int32_t> m_gathered{}; ///< Columns whose outputs are needed whole.
    std::deque<TensorId> m_open{}; ///< Cut, but users not yet looked at.
    std::deque<std::pair<OperatorId, std::int32_t>> m_undecidedInputs{};
    TensorId m_followed{};
    TensorId m_blamed{};
    int m_rows = 0;
    int m_columns = 0;
    int m_products = 0;
    int m_losses = 0; ///< That read a range of the classes.
    std::string m_obstacle{};
};

bool Region::grow(OperatorId op, std::int32_t identifier)
{
    if (!decide(op, identifier))
        return false;
    while (!m_open.empty() || !m_undecidedInputs.empty()) {
        if (!m_open.empty()) { // users first: they fail sooner
            const TensorId tensor = m_open.front();
            m_open.pop_front();
            if (!follow(tensor))
                return false;
            continue;
        }
        const auto [next, along] = m_undecidedInputs.front();
        m_undecidedInputs.pop_front();
        if (!decideInputs(next, along))
            return false;
    }
    return true;
}

/// Whether an identifier can be cut as all others of the region; notes how they could be cut otherwise.
bool Region::fits(OperatorId id, std::int32_t identifier)
{
    const Operator &op = m_search.graph.at(id);
    const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(identifier)].size;
    if (m_units == 0 ? dividesInto(op.annotation, identifier, m_search.parts) : size % m_units == 0)
        return true;
    const std::int64_t units = m_units == 0 ? size : std::gcd(size, m_units);
    const bool may = m_search.uneven == UnevenParts::Any
        || (units == size && !vocabularyShares(m_search.index, id, identifier, m_search.parts).empty());
    if (units >= m_search.parts && may)
        m_otherUnits = units;
    return false;
}

/// Whether what an earlier region cut is cut as this one cuts.
bool Region::isCutAlike(std::int64_t theirs)
{
    if (theirs == m_units)
        return true;
    if (m_units == 0)
        m_otherUnits = theirs;
    return false;
}

bool Region::decide(OperatorId id, std::int32_t identifier)
{
    const Operator &op = m_search.graph.at(id);
    const std::int32_t before = m_search.identifier[static_cast<std::size_t>(id.index)];
    if (const auto found = m_identifier.find(id); found != m_identifier.end())
        return found->second == identifier || fail("'" + op.name + "' would have to be split in two ways");
    if (before >= 0)
        return (before == identifier
                   && isCutAlike(m_search.unitsOfOperator[static_cast<std::size_t>(id.index)]))
            || fail("'" + op.name + "' would have to be split in two ways");
    const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(identifier)];
    if (!fits(id, identifier)) {
        return fail("'" + dimension.name + "' of '" + op.name + "' has size " + std::to_string(dimension.size)
            + ", which " + std::to_string(m_search.parts) + " does not divide");
    }
    m_identifier.emplace(id, identifier);
    bool inWeight = false;
    bool inActivation = false;
    for (std::size_t s = 0; s < op.inputs.size(); ++s) {
        if (!op.inputs[s].valid() || !leadingPosition(op.annotation, op.annotation.inputs[s], identifier))
            continue;
        const bool weight = m_search.graph.at(op.inputs[s]).role == TensorRole::Weight;
        (weight ? inWeight : inActivation) = true;
    }
    const bool product = isProduct(op);
    m_products += product ? 1 : 0;
    if (dimension.mark == DimensionMark::Reduce && categoryOf(op.kind) == OperatorCategory::Loss) {
        ++m_losses; // of what every item's logits come down to a few numbers are combined
    } else if (dimension.mark == DimensionMark::Reduce) {
        if (!product || !inWeight)
            return fail(
                "'" + op.name + "' sums over '" + dimension.name + "', and has no weight to split with it");
        ++m_rows;
    } else if (product && inWeight && !inActivation) {
        ++m_columns;
    }
    for (std::size_t s = 0; s < op.outputs.size(); ++s) {
        if (!op.outputs[s].valid())
            continue;
        const TensorTerms &terms = op.annotation.outputs[s];
        if (const auto at = leadingPosition(op.annotation, terms, identifier)) {
            if (!setCut(op.outputs[s], static_cast<std::int32_t>(*at)))
                return false;
        } else if (mentions(terms, identifier)) {
            return fail("'" + op.name + "' mixes '" + dimension.name + "' with other dimensions");
        }
    }
    m_undecidedInputs.emplace_back(id, identifier);
    return true;
}

bool Region::decideInputs(OperatorId id, std::int32_t identifier)
{
    const Operator &op = m_search.graph.at(id);
    for (std::size_t s = 0; s < op.inputs.size(); ++s) {
        if (!op.inputs[s].valid())
            continue;
        const auto at = leadingPosition(op.annotation, op.annotation.inputs[s], identifier);
        if (cutOf(op.inputs[s]) < 0 && isShared(op, identifier, s)) {
            gather(op.inputs[s]);
        } else if (at) {
            if (!needCut(op.inputs[s], static_cast<std::int32_t>(*at)))
                return false;
        } else if (cutOf(op.inputs[s]) >= 0) {
            return fail(
                "'" + op.name + "' needs '" + m_search.graph.at(op.inputs[s]).name + "' whole", op.inputs[s]);
        }
    }
    return true;
}

/// Whether several parts read the same of this input: key heads, where there are more devices than those.
bool Region::isShared(const Operator &op, std::int32_t identifier, std::size_t slot) const
{
    const bool isOnlyHead = op.kind == OperatorKind::Attention && (slot == 1 || slot == 2)
        && identifier == splittableFactor(op.annotation, op.annotation.outputs[0].terms.end()[-3])
        && !mentions(op.annotation.inputs[slot], identifier);
    const std::int32_t inner = innerOf(op.annotation, identifier);
    return isOnlyHead
        || (inner >= 0 && !mentions(op.annotation.inputs[slot], inner)
            && op.annotation.dimensions[static_cast<std::size_t>(identifier)].size < m_search.parts);
}

/// Cuts the product by weights that `tensor` comes from, through operators without others, along what it
/// makes: its parts are gathered before heads are told apart.
void Region::gather(TensorId tensor)
{
    for (OperatorId maker = m_search.makerOf(tensor); maker.valid(); maker = m_search.makerOf(tensor)) {
        const Operator &op = m_search.graph.at(maker);
        if (isProduct(op) && m_search.hasWeight(op)) {
            if (const std::int32_t column = m_search.columnOf(op); column >= 0)
                m_gathered.emplace(maker, column);
            return;
        }
        std::vector<TensorId> trained;
        for (const TensorId input : op.inputs)
            if (input.valid() && m_search.trained[static_cast<std::size_t>(input.index)]
                && m_search.graph.at(input).role != TensorRole::Weight)
                trained.push_back(input);
        if (trained.size() != 1)
            return;
        tensor = trained.front();
    }
}

bool Region::setCut(TensorId tensor, std::int32_t dimension)
{
    if (const std::int32_t known = cutOf(tensor); known >= 0)
        return (known == dimension && isCutAlike(unitsOf(tensor)))
            || fail("'" + m_search.graph.at(tensor).name + "' would be cut in two ways");
    // What the model returns may be cut: the host takes it in pieces.
    if (m_whole.contains(tensor))
        return fail("'" + m_search.graph.at(tensor).name + "' is needed whole", m_followed);
    m_cut.emplace(tensor, dimension);
    m_open.push_back(tensor);
    return true;
}

bool Region::needCut(TensorId tensor, std::int32_t dimension)
{
    const Tensor &itself = m_search.graph.at(tensor);
    if (const std::int32_t known = cutOf(tensor); known >= 0)
        return (known == dimension && isCutAlike(unitsOf(tensor)))
            || fail("'" + itself.name + "' would be cut in two ways", tensor);
    const OperatorId maker = m_search.makerOf(tensor);
    if (!maker.valid() || !m_search.trained[static_cast<std::size_t>(tensor.index)])
        return true; // each part takes its slice; no gradient to gather
    if (m_maySlice && m_whole.contains(tensor))
        return true;
    const Operator &op = m_search.graph.at(maker);
    std::optional<std::int32_t> identifier;
    for (std::size_t s = 0; s < op.outputs.size(); ++s) {
        const TensorTerms &terms = op.annotation.outputs[s];
        if (op.outputs[s] == tensor && static_cast<std::size_t>(dimension) < terms.terms.size())
            identifier = disjointFactor(op.annotation, terms.terms[static_cast<std::size_t>(dimension)]);
    }
    if (identifier && fits(maker, *identifier)
        && op.annotation.dimensions[static_cast<std::size_t>(*identifier)].size >= m_search.parts)
        return decide(maker, *identifier);
    return (m_maySlice && m_otherUnits == 0)
        || fail("'" + op.name + "' cannot be split so that '" + itself.name + "' is cut", tensor);
}

/// Every user of a cut tensor must take it cut.
bool Region::follow(TensorId tensor)
{
    m_followed = tensor;
    const auto dimension = static_cast<std::size_t>(cutOf(tensor));
    for (const OperatorId user : m_search.index.uses().consumers[static_cast<std::size_t>(tensor.index)]) {
        const Operator &op = m_search.graph.at(user);
        if (op.direction != Direction::Forward)
            continue;
        for (std::size_t s = 0; s < op.inputs.size(); ++s) {
            if (op.inputs[s] != tensor)
                continue;
            const TensorTerms &terms = op.annotation.inputs[s];
            const auto identifier = dimension < terms.terms.size()
                ? disjointFactor(op.annotation, terms.terms[dimension])
                : std::nullopt;
            if (!identifier)
                return fail("'" + op.name + "' needs '" + m_search.graph.at(tensor).name + "' whole");
            if (!decide(user, *identifier))
                return false;
        }
    }
    m_followed = {};
    return true;
}

/// A region that was tried in equal parts, and where something did not divide, in other units.
struct Grown {
    bool is = false;
    std::optional<Region> region{}; ///< That grew; else the last one that was tried.
    TensorId blamed{}; ///< Of equal parts.
    std::string obstacle{}; ///< Likewise.
};

Grown growRegion(const Search &search, bool maySlice, const std::set<TensorId> &whole, OperatorId op,
    std::int32_t identifier)
{
    Grown grown;
    std::int64_t units = 0;
    for (int round = 0; round < kMostUnits; ++round) {
        Region &region = grown.region.emplace(search, maySlice, whole, units);
        grown.is = region.grow(op, identifier);
        if (round == 0) {
            grown.blamed = region.blamed();
            grown.obstacle = region.obstacle();
        }
        if (grown.is || region.otherUnits() == 0 || region.otherUnits() == units)
            break;
        units = region.otherUnits();
    }
    return grown;
}

void commit(Search &search, const Region &region, TensorParallelCut &result)
{
    for (const auto &[op, identifier] : region.identifiers()) {
        search.identifier[static_cast<std::size_t>(op.index)] = identifier;
        search.unitsOfOperator[static_cast<std::size_t>(op.index)] = region.units();
        if (region.units() > 0) {
            const std::int64_t size =
                search.graph.at(op).annotation.dimensions[static_cast<std::size_t>(identifier)].size;
            auto &sizes = result.sizes[static_cast<std::size_t>(op.index)];
            sizes = roundedShares(region.units(), search.parts);
            for (std::int64_t &share : sizes)
                share *= size / region.units();
        }
    }
    for (const auto &[op, identifier] : region.gathered())
        if (std::int32_t &own = search.identifier[static_cast<std::size_t>(op.index)]; own < 0)
            own = identifier;
    for (const auto &[tensor, dimension] : region.cuts()) {
        search.cut[static_cast<std::size_t>(tensor.index)] = dimension;
        search.unitsOfTensor[static_cast<std::size_t>(tensor.index)] = region.units();
    }
    // Pairs, and rows fed by slices; a loss or a lookup alone is no reason to split a model.
    result.regions += region.losses() == 0 && region.products() > 1 ? 1 : 0;
}

/// Regions that begin with columns, and end with rows or with a loss's statistics of the classes.
void findPairs(Search &search, TensorParallelCut &result)
{
    const Graph &graph = search.graph;
    const std::set<TensorId> none;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || !isProduct(op) || !search.hasWeight(op))
            continue;
        for (const std::int32_t identifier : splittableDimensions(op.annotation)) {
            if (search.identifier[i] >= 0)
                break;
            if (op.annotation.dimensions[static_cast<std::size_t>(identifier)].mark != DimensionMark::Spatial)
                continue;
            bool inWeight = false;
            bool inOther = false;
            for (std::size_t s = 0; s < op.inputs.size(); ++s) {
                if (!op.inputs[s].valid() || !mentions(op.annotation.inputs[s], identifier))
                    continue;
                (graph.at(op.inputs[s]).role == TensorRole::Weight ? inWeight : inOther) = true;
            }
            if (!inWeight || inOther)
                continue;
            const Grown grown = growRegion(search, false, none, {static_cast<std::int32_t>(i)}, identifier);
            if (grown.is && (grown.region->rows() > 0 || grown.region->losses() > 0))
                commit(search, *grown.region, result);
            else if (result.obstacle.empty() || grown.obstacle.find("does not divide") != std::string::npos)
                result.obstacle = grown.obstacle;
        }
    }
}

/// Regions that end with a row, and begin with slices where nothing else is possible.
void findRows(Search &search, TensorParallelCut &result)
{
    const Graph &graph = search.graph;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || !isProduct(op) || !search.hasWeight(op))
            continue;
        for (const std::int32_t identifier : splittableDimensions(op.annotation)) {
            if (search.identifier[i] >= 0)
                break;
            if (op.annotation.dimensions[static_cast<std::size_t>(identifier)].mark != DimensionMark::Reduce)
                continue;
            // What turns out to be needed whole by someone is sliced instead of cut in the next attempt.
            std::set<TensorId> whole;
            for (int attempt = 0; attempt < kMostRetries; ++attempt) {
                const Grown grown =
                    growRegion(search, true, whole, {static_cast<std::int32_t>(i)}, identifier);
                if (grown.is) {
                    if (grown.region->products() > 1)
                        commit(search, *grown.region, result);
                    break;
                }
                const auto isNew = [&](TensorId tensor) {
                    return tensor.valid() && whole.insert(tensor).second;
                };
                if (!isNew(grown.region->blamed()) && !isNew(grown.blamed))
                    break;
            }
        }
    }
}

/// Lookups in tables of tokens, cut along the vocabulary as Megatron-LM does (arXiv:1909.08053, section 3):
/// what they make is added up, and every device keeps its share of the table. Not where another operator
/// reads the same table whole.
void findVocabularies(Search &search, TensorParallelCut &result)
{
    const Graph &graph = search.graph;
    const DimensionClasses &classes = search.index.dimensions();
    const auto rowsOf = [&](OperatorId id) -> std::optional<std::int32_t> {
        const Operator &op = graph.at(id);
        if (op.kind != OperatorKind::Embedding || op.direction != Direction::Forward
            || graph.at(op.inputs[0]).role != TensorRole::Weight)
            return std::nullopt;
        const auto rows = disjointFactor(op.annotation, op.annotation.inputs[0].terms[0]);
        if (!rows
            || !leadingWith(classes,
                classes.ofOperator[static_cast<std::size_t>(id.index)][static_cast<std::size_t>(*rows)],
                DimensionMeaning::Vocabulary)
            || op.annotation.dimensions[static_cast<std::size_t>(*rows)].size < search.parts)
            return std::nullopt;
        return rows;
    };
    const auto readsShare = [&](OperatorId id, TensorId table) {
        const Operator &op = graph.at(id);
        if (op.direction != Direction::Forward || rowsOf(id))
            return true;
        const std::int32_t cut = search.identifier[static_cast<std::size_t>(id.index)];
        for (std::size_t s = 0; s < op.inputs.size(); ++s)
            if (op.inputs[s] == table
                && (cut < 0 || leadingPosition(op.annotation, op.annotation.inputs[s], cut) != 0))
                return false;
        return true;
    };
    std::vector<std::pair<OperatorId, std::int32_t>> lookups;
    for (std::size_t i = 0; i < search.index.forwardCount(); ++i) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const auto rows = rowsOf(id);
        if (!rows || search.identifier[i] >= 0)
            continue;
        const TensorId table = graph.at(id).inputs[0];
        const auto &users = search.index.uses().consumers[static_cast<std::size_t>(table.index)];
        if (std::all_of(users.begin(), users.end(), [&](OperatorId user) { return readsShare(user, table); }))
            lookups.emplace_back(id, *rows);
    }
    const std::set<TensorId> none;
    for (const auto &[id, rows] : lookups) {
        if (const Grown grown = growRegion(search, false, none, id, rows); grown.is)
            commit(search, *grown.region, result);
    }
}

} // namespace

std::vector<std::int64_t> vocabularyShares(
    const SelectorIndex &index, OperatorId op, std::int32_t identifier, std::int32_t parts)
{
    const DimensionClasses &classes = index.dimensions();
    const auto at = static_cast<std::size_t>(identifier);
    const std::int64_t size = index.graph().at(op).annotation.dimensions[at].size;
    const bool isOne = size >= kLargePart * parts
        && leadingWith(classes, classes.ofOperator[static_cast<std::size_t>(op.index)][at],
            DimensionMeaning::Vocabulary);
    return isOne ? roundedShares(size, parts) : std::vector<std::int64_t>{};
}

TensorParallelCut findTensorParallel(const SelectorIndex &index, std::int32_t parts, UnevenParts uneven)
{
    const Graph &graph = index.graph();
    Search search{index, graph, parts, uneven};
    search.trained.assign(graph.tensors.size(), false);
    search.identifier.assign(graph.operators.size(), -1);
    search.cut.assign(graph.tensors.size(), -1);
    search.unitsOfOperator.assign(graph.operators.size(), 0);
    search.unitsOfTensor.assign(graph.tensors.size(), 0);
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        search.trained[t] = graph.tensors[t].role == TensorRole::Weight;
    for (const Operator &op : graph.operators) {
        if (op.direction != Direction::Forward)
            continue;
        const bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id.valid() && search.trained[static_cast<std::size_t>(id.index)]; });
        for (const TensorId output : op.outputs) {
            if (output.valid())
                search.trained[static_cast<std::size_t>(output.index)] = any;
        }
    }

    TensorParallelCut result;
    result.sizes.resize(graph.operators.size());
    findPairs(search, result);
    findRows(search, result);
    if (result.regions > 0)
        findVocabularies(search, result);
    result.identifier = std::move(search.identifier);
    return result;
}

} // namespace planloom
