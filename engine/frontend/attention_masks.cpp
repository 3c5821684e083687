#include "engine/frontend/attention_masks.h"

#include "engine/frontend/onnx_values.h"

#include <algorithm>

namespace planloom {

namespace {

/// Masks with more elements stay inputs.
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

/// A mask as the range of keys that each query sees.
class KnownValues
{
public:
    KnownValues(const Tensor &mask, std::int64_t queries, std::int64_t keys, bool isHidden)
        : m_type(mask.type.dataType)
        , m_bytes(mask.data->bytes.data())
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

    /// Nothing if what is seen is not one run of keys, or a value is neither seen nor hidden.
    std::optional<Range> seenBy(std::int64_t matrix, std::int64_t query) const
    {
        Range seen;
        int changes = 0;
        bool before = false;
        for (std::int64_t j = 0; j < m_keys; ++j) {
            const auto sees = seesAt(matrix * m_matrix + query * m_row + j * m_column);
            if (!sees)
                return std::nullopt;
            if (*sees == before)
                continue;
            (*sees ? seen.begin : seen.end) = j;
            before = *sees;
            ++changes;
        }
        if (before)
            seen.end = m_keys;
        return changes > 2 || seen.size() <= 0 ? std::nullopt : std::optional(seen);
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
    const Tensor &mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    if (!mask.data || elementCount(mask.type.shape) == 0 || elementCount(mask.type.shape) > kMostElements
        || (!isFloating(mask.type.dataType) && mask.type.dataType != DataType::Bool))
        return std::nullopt;
    const KnownValues values(mask, queries, keys, isHidden);
    const auto first = values.seenBy(0, 0);
    const auto last = values.seenBy(0, queries - 1);
    if (!first || !last)
        return std::nullopt;
    KnownMask found;
    found.seesAll = first->size() == keys && last->size() == keys;
    if (!found.seesAll) {
        found.reach.causal = true;
        found.reach.offset = first->end - 1;
        found.reach.window = last->begin > 0 ? last->size() : 0;
    }
    for (std::int64_t m = 0; m < values.matrices(); ++m) {
        for (std::int64_t i = 0; i < queries; ++i) {
            if (values.seenBy(m, i) != found.reach.keysOf(i, keys))
                return std::nullopt;
        }
    }
    return found;
}

/// Values that go up by one along one dimension: Range, moved and reshaped.
struct Steps {
    std::int64_t start = 0;
    std::int64_t count = 0;
    bool alongKeys = false; ///< The last dimension, rather than the one before.
};

std::optional<Steps> stepsOf(const FuseEditor &editor, TensorId id)
{
    const Shape shape = editor.shape(id);
    const Operator *made = editor.maker(id);
    while (made != nullptr
        && (made->kind == OperatorKind::Reshape || made->kind == OperatorKind::Cast
            || made->kind == OperatorKind::Identity))
        made = editor.maker(made->inputs[0]);
    if (made == nullptr || made->kind != OperatorKind::Range || shape.size() < 2
        || made->attributes.integer("delta", 0) != 1)
        return std::nullopt;
    Steps steps{made->attributes.integer("start"), elementCount(shape)};
    if (shape.back() == steps.count)
        steps.alongKeys = true;
    else if (shape[shape.size() - 2] != steps.count)
        return std::nullopt;
    return steps;
}

/// keys <= queries, written in any of four ways.
std::optional<KnownMask> maskOfComparison(
    const FuseEditor &editor, TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    using enum OperatorKind;
    const Operator *made = editor.maker(mask);
    if (made == nullptr || made->kind < Greater || made->kind > LessOrEqual)
        return std::nullopt;
    const auto left = stepsOf(editor, made->inputs[0]);
    const auto right = stepsOf(editor, made->inputs[1]);
    if (!left || !right || left->alongKeys == right->alongKeys)
        return std::nullopt;
    const Steps &ofKeys = left->alongKeys ? *left : *right;
    const Steps &ofQueries = left->alongKeys ? *right : *left;
    if (ofKeys.count != keys || ofQueries.count != queries)
        return std::nullopt;
    // As (key COMPARED query): which of <, <= is seen, or hidden.
    const bool less = (made->kind == Less || made->kind == LessOrEqual) == left->alongKeys;
    const bool orEqual = made->kind == GreaterOrEqual || made->kind == LessOrEqual;
    if (less == isHidden)
        return std::nullopt; // what lies ahead is seen
    const bool seesEqual = orEqual != isHidden;
    KnownMask found;
    found.reach.causal = true;
    found.reach.offset = ofQueries.start - ofKeys.start - (seesEqual ? 0 : 1);
    return found.reach.offset < 0 ? std::nullopt : std::optional(found);
}

} // namespace

std::optional<KnownMask> knownMask(
    const FuseEditor &editor, TensorId mask, std::int64_t queries, std::int64_t keys, bool isHidden)
{
    if (queries < 1 || keys < 1)
        return std::nullopt;
    if (editor.isParameter(mask))
        return maskOfValues(editor.tensor(mask), queries, keys, isHidden);
    return maskOfComparison(editor, mask, queries, keys, isHidden);
}

} // namespace planloom
