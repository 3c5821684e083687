#include "engine/frontend/passes/fuse/attention_masks.h"

#include "engine/frontend/writer/fold_operator.h"
#include "engine/frontend/writer/stored_tensor.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>

namespace planloom {

namespace {

/// Masks with more elements stay inputs.
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;
/// What is computed here has no more.
constexpr std::int64_t kMostComputed = std::int64_t{1} << 22;
/// A stored tensor that is read for it has no more.
constexpr std::int64_t kMostReadBytes = std::int64_t{1} << 26;
/// From there to the mask no more operators are looked at.
constexpr int kMostSteps = 64;

/// The range that `sees` holds in; nothing if it is not one run of keys, or some value says neither.
/// @param sees  of a key: whether it is seen; may say nothing
template<typename Sees> std::optional<Range> runOf(std::int64_t keys, Sees sees)
{
    Range seen;
    int changes = 0;
    bool before = false;
    for (std::int64_t j = 0; j < keys; ++j) {
        const std::optional<bool> now = sees(j);
        if (!now)
            return std::nullopt;
        if (*now == before)
            continue;
        (*now ? seen.begin : seen.end) = j;
        before = *now;
        if (++changes > 2)
            return std::nullopt;
    }
    if (before)
        seen.end = keys;
    return seen.size() <= 0 ? std::nullopt : std::optional(seen);
}

/// What a mask says in which `seenBy(matrix, query)` is what a query sees.
template<typename SeenBy>
std::optional<KnownMask> maskOf(std::int64_t matrices, std::int64_t queries, std::int64_t keys, SeenBy seenBy)
{
    const std::optional<Range> first = seenBy(0, 0);
    const std::optional<Range> last = seenBy(0, queries - 1);
    if (!first || !last)
        return std::nullopt;
    KnownMask found;
    found.seesAll = first->size() == keys && last->size() == keys;
    if (!found.seesAll) {
        found.reach.causal = true;
        found.reach.offset = first->end - 1;
        found.reach.window = last->begin > 0 ? last->size() : 0;
    }
    for (std::int64_t m = 0; m < matrices; ++m)
        for (std::int64_t i = 0; i < queries; ++i)
            if (seenBy(m, i) != found.reach.keysOf(i, keys))
                return std::nullopt;
    return found;
}

/// A mask as the range of keys that each query sees.
class KnownValues
{
public:
    KnownValues(const TensorData &mask, std::int64_t queries, std::int64_t keys, bool isHidden)
        : m_type(mask.type.dataType)
        , m_bytes(mask.bytes.data())
        , m_isHidden(isHidden)
    {
        const Shape &shape = mask.type.shape;
        const std::size_t rank = shape.size();
        // An extent of 1 stands for all.
        m_column = rank > 0 && shape[rank - 1] == keys ? 1 : 0;
        m_row = rank > 1 && shape[rank - 2] == queries && queries > 1 ? shape[rank - 1] : 0;
        m_matrix = (rank > 0 ? shape[rank - 1] : 1) * (rank > 1 ? shape[rank - 2] : 1);
        m_matrices = m_matrix == 0 ? 0 : elementCount(shape) / m_matrix;
        m_keys = keys;
    }

    std::int64_t matrices() const { return m_matrices; }

    std::optional<Range> seenBy(std::int64_t matrix, std::int64_t query) const
    {
        const std::int64_t row = matrix * m_matrix + query * m_row;
        return runOf(m_keys, [&](std::int64_t key) { return seesAt(row + key * m_column); });
    }

private:
    std::optional<bool> seesAt(std::int64_t element) const
    {
        const Number number = readNumber(m_type, m_bytes, static_cast<std::size_t>(element));
        if (!isFloating(m_type))
            return (number.asInteger() != 0) != m_isHidden;
        if (number.real == 0)
            return true;
        return number.real <= kHidingScore ? std::optional(false) : std::nullopt;
    }

    DataType m_type;
    const std::byte *m_bytes;
    bool m_isHidden;
    std::int64_t m_keys = 0;
    std::int64_t m_row = 0;
    std::int64_t m_column = 0;
    std::int64_t m_matrix = 0;
    std::int64_t m_matrices = 0;
};

std::optional<KnownMask> maskOfValues(
    const TensorData &mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    if (elementCount(mask.type.shape) == 0 || elementCount(mask.type.shape) > kMostElements
        || (!isFloating(mask.type.dataType) && mask.type.dataType != DataType::Bool))
        return std::nullopt;
    const KnownValues values(mask, queries, keys, isHidden);
    return maskOf(values.matrices(), queries, keys,
        [&](std::int64_t matrix, std::int64_t query) { return values.seenBy(matrix, query); });
}

bool compares(OperatorKind kind, std::int64_t a, std::int64_t b)
{
    switch (kind) {
    case OperatorKind::Greater:
        return a > b;
    case OperatorKind::GreaterOrEqual:
        return a >= b;
    case OperatorKind::Less:
        return a < b;
    case OperatorKind::LessOrEqual:
        return a <= b;
    default:
        return a == b;
    }
}

bool isComparison(OperatorKind kind)
{
    return (kind >= OperatorKind::Greater && kind <= OperatorKind::LessOrEqual)
        || kind == OperatorKind::Equal;
}

/// Leaves one of `matrices` equal stretches.
std::int64_t withoutCopies(std::vector<std::int64_t> &values, std::int64_t count)
{
    const auto matrices = static_cast<std::int64_t>(values.size()) / count;
    for (std::int64_t m = 1; m < matrices; ++m)
        if (!std::equal(values.begin(), values.begin() + count, values.begin() + m * count))
            return matrices;
    values.resize(static_cast<std::size_t>(count));
    return 1;
}

} // namespace

std::int64_t KnownMasks::Numbers::at(std::int64_t leading, std::int64_t index) const
{
    const std::int64_t begin = static_cast<std::int64_t>(values.size()) == count ? 0 : leading * count;
    return values[static_cast<std::size_t>(begin + index)];
}

/// The values of what is computed from constants alone; null for all else.
KnownMasks::Values KnownMasks::values(TensorId id)
{
    if (m_editor.isParameter(id))
        return m_editor.tensor(id).role == TensorRole::Buffer
            ? valuesUpTo(m_editor.tensor(id), kMostReadBytes)
            : nullptr;
    const auto [known, isNew] = m_values.try_emplace(id, nullptr);
    const Operator *made = isNew && m_values.size() < kMostSteps ? m_editor.maker(id) : nullptr;
    if (made == nullptr || made->outputs.size() != 1 || elementCount(m_editor.shape(id)) > kMostComputed)
        return known->second;
    std::vector<Values> inputs;
    for (const TensorId input : made->inputs) {
        inputs.push_back(input ? values(input) : nullptr);
        if (input && !inputs.back())
            return nullptr;
    }
    if (auto folded = foldOperator(made->kind, made->attributes, inputs, {m_editor.tensor(id).type}))
        m_values[id] = std::make_shared<const TensorData>(std::move(folded->front()));
    return m_values[id];
}

std::optional<KnownMasks::Numbers> KnownMasks::numbers(TensorId id)
{
    const Shape shape = m_editor.shape(id);
    const DataType type = m_editor.tensor(id).type.dataType;
    const Values data = isFloating(type) || type == DataType::Bool ? nullptr : values(id);
    const std::size_t rank = shape.size();
    if (!data || rank < 2 || elementCount(shape) == 0 || (shape[rank - 1] > 1 && shape[rank - 2] > 1))
        return std::nullopt;
    Numbers numbers;
    numbers.ofKeys = shape[rank - 1] > 1;
    numbers.count = std::max(shape[rank - 1], shape[rank - 2]);
    for (std::int64_t i = 0; i < elementCount(shape); ++i)
        numbers.values.push_back(
            readNumber(type, data->bytes.data(), static_cast<std::size_t>(i)).asInteger());
    withoutCopies(numbers.values, numbers.count);
    return numbers;
}

/// Numbers of keys beside numbers of queries, in either order: "key <= query", or "same document".
std::optional<KnownMask> KnownMasks::compared(
    const Operator &comparison, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    const auto left = numbers(comparison.inputs[0]);
    const auto right = numbers(comparison.inputs[1]);
    if (!left || !right)
        return std::nullopt;
    const bool leftIsOfKeys =
        left->ofKeys || (!right->ofKeys && left->count == keys && right->count == queries);
    const Numbers &ofKeys = leftIsOfKeys ? *left : *right;
    const Numbers &ofQueries = leftIsOfKeys ? *right : *left;
    if (ofKeys.count != keys || ofQueries.count != queries || (ofQueries.ofKeys && queries > 1)
        || (!ofKeys.ofKeys && keys > 1))
        return std::nullopt;
    const auto matricesOf = [](const Numbers &numbers) {
        return static_cast<std::int64_t>(numbers.values.size()) / numbers.count;
    };
    const std::int64_t matrices = std::max(matricesOf(ofKeys), matricesOf(ofQueries));
    for (const Numbers *each : {&ofKeys, &ofQueries})
        if (matricesOf(*each) != 1 && matricesOf(*each) != matrices)
            return std::nullopt;
    if (matrices * queries * keys > kMostElements)
        return std::nullopt;
    return maskOf(matrices, queries, keys, [&](std::int64_t matrix, std::int64_t query) {
        const std::int64_t asking = ofQueries.at(matrix, query);
        return runOf(keys, [&](std::int64_t key) -> std::optional<bool> {
            const std::int64_t asked = ofKeys.at(matrix, key);
            return compares(comparison.kind, leftIsOfKeys ? asked : asking, leftIsOfKeys ? asking : asked)
                != isHidden;
        });
    });
}

std::optional<KnownMask> KnownMasks::read(
    TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    if (m_editor.isParameter(mask)) {
        const Values stored = valuesUpTo(m_editor.tensor(mask), kMostReadBytes);
        return stored ? maskOfValues(*stored, queries, keys, isHidden) : std::nullopt;
    }
    m_values.clear(); // steps are counted from each mask
    const Operator *made = m_editor.maker(mask);
    if (made != nullptr && isComparison(made->kind))
        if (const auto known = compared(*made, queries, keys, isHidden))
            return known;
    const DataType type = m_editor.tensor(mask).type.dataType;
    const Values computed = isFloating(type) || type == DataType::Bool ? values(mask) : nullptr;
    return computed ? maskOfValues(*computed, queries, keys, isHidden) : std::nullopt;
}

std::optional<KnownMask> KnownMasks::of(TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    if (queries < 1 || keys < 1)
        return std::nullopt;
    const auto [known, isNew] = m_masks.try_emplace({mask, queries, keys, isHidden});
    if (isNew)
        known->second = read(mask, queries, keys, isHidden);
    return known->second;
}

} // namespace planloom
