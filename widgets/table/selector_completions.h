#pragma once

#include "engine/table/selector_index.h"
#include "engine/table/table_document.h"
#include "widgets/design/plan_update.h"

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What selectors of a model may say, for completion while typing. Immutable; made off the GUI thread, asked
/// on it.
class SelectorCompletions
{
public:
    /// Layers, modules, operators (and patterns over repeated layers), kinds, weights and keywords of a
    /// model. O(names x log names).
    SelectorCompletions(const OpenedModel &model, const std::stop_token &stop);

    /// At most `most` continuations of what is being typed, best first: those that begin with it, then those
    /// whose name or last part of a name does. O(log names + most).
    std::vector<std::string> find(std::string_view typed, std::size_t most) const;
    std::size_t size() const { return m_tokens.size(); }

private:
    struct Key {
        std::string text{}; ///< Lower case, by which it is found.
        std::int32_t token = 0;
    };
    void collect(const std::vector<Key> &keys, std::string_view typed, std::size_t most,
        std::vector<std::int32_t> &found) const;

    std::vector<std::string> m_tokens;
    std::vector<Key> m_whole; ///< Sorted.
    std::vector<Key> m_tails; ///< Sorted: names without their kind, and last parts of paths.
};
constexpr std::size_t kMostCompletions = 60; ///< Offered at once.
using SelectorCompletionsSnapshot = std::shared_ptr<const SelectorCompletions>;

/// The word of a selector or value that stands at `cursor` in `text`, and is completed.
struct TypedWord {
    std::size_t begin = 0;
    std::size_t end = 0;
};
TypedWord wordAt(std::string_view text, std::size_t cursor);

/// A dimension that operators of a selection may be split along.
struct DimensionChoice {
    std::string name{}; ///< As rows name it: "batch", "m", "out0.-1".
    std::string marked{}; ///< As people read it: "k+ (768)".
    std::vector<std::int32_t>
        counts{}; ///< Into how many equal parts, for all operators that have it; from 2.
    std::int32_t operators = 0; ///< That have it.
};

/// What may be written into a value's cell: facts of the model and the rows, found off the GUI thread.
struct ValueChoices {
    std::vector<DimensionChoice> dimensions{}; ///< The most common first.
    bool valueSplit = false; ///< Some operator takes one.
    std::vector<MeshAxis> mesh{};
    std::vector<std::int32_t> microBatches{}; ///< What divides the batch.
    std::int32_t deviceCount = 1;
    std::vector<InputDimension> inputDimensions{}; ///< Whose sizes may be chosen.
    std::map<std::string, Capacity> rooms{}; ///< `Graph::rooms`.
    std::vector<std::string> recurrences{}; ///< That can be unrolled.
};
/// Facts for rows that select `selector`. O(operators).
ValueChoices valueChoices(const OpenedModel &model, const Selector &selector,
    const std::vector<MeshAxis> &mesh, std::int32_t deviceCount, const std::stop_token &stop);

/// Continuations of a value's text, for rules without an editor of their own.
std::vector<std::string> valueSuggestions(
    std::string_view rule, const ValueChoices &choices, std::string_view typed, std::size_t most);

} // namespace planloom
