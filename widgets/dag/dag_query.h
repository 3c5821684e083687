#pragma once

#include "engine/base/result.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A question about operators, as people type it to find them: the selectors of rows (`kind:Linear &
/// layer:0-3`,
/// `!forward`, brackets), and beyond them
/// - a bare word, in any case: the name or kind contains it;
/// - `/regular expression/`, in any case, on the name;
/// - comparisons `bytes>64MiB` (of outputs), `time>1ms` (a step), `device=3`, `stage<2`, `layer>=4` with < <=
/// = >= >.
struct DagQuery {
    enum class Kind : std::uint8_t { All, Words, Regex, Compare, Selected, And, Or, Not };
    enum class Field : std::uint8_t { Bytes, Time, Device, Stage, Layer };
    enum class Relation : std::uint8_t { Less, LessEqual, Equal, GreaterEqual, Greater };
    Kind kind = Kind::All;
    std::string text{}; ///< Of Words and Regex.
    Field field = Field::Bytes;
    Relation relation = Relation::Equal;
    double value = 0; ///< Bytes, seconds, or a number.
    Selector selector{};
    std::vector<DagQuery> children{};
};

/// @return InvalidInput: what was expected and what was found
Result<DagQuery> parseDagQuery(std::string_view text);

/// What a question is asked about.
struct DagQueryWorld {
    std::shared_ptr<const SelectorIndex> index{}; ///< Not null.
    std::shared_ptr<const Plan> plan{}; ///< May be null: then nothing has a device or stage.
    std::vector<double> seconds{}; ///< By operator; may be empty.
};
/// Operators it is true of, ascending, of all directions. Ends early, with anything, once `stop` is asked.
/// O(operators x size of the question)
std::vector<OperatorId> askDagQuery(
    const DagQuery &query, const DagQueryWorld &world, std::stop_token stop = {});

} // namespace planloom
