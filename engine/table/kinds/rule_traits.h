#pragma once

// A kind of row of the constraint table is written once. A new one is
//
//   engine/table/kinds/X.h                  its rule (a plain struct, and what it means) and `RuleTraits`
//   engine/table/kinds/X.cpp                its grammar, and what it means of operators or of the plan:
//                                           `RuleMeaning`, declared in kinds/meaning.h; listed in
//                                           engine/table/CMakeLists.txt
//   engine/table/kinds/beside.cpp           how two of its rows stand to one another, if they are about the
//                                           whole plan
//   engine/table/table.h                    the include, and its place in `Rule`
//   resources/schema/table.json             its JSON form
//   widgets/table/kinds/X_cells.cpp         its words for people and its value's editor, listed in
//                                           widgets/table/kinds/rule_cells.h and widgets/table/CMakeLists.txt
//   tests/engine/table/random_rules.h       a random sample, which the tests of every form take part with
//
// Text, JSON, tests and the grid go over the alternatives of `Rule` (all_kinds.h) and know no kind by name;
// what has been forgotten does not compile, or fails kinds_test or kind_cells_test.

#include <array>
#include <cstdint>
#include <string>

namespace planloom {

class RuleForm;

/// How a row of some rule is written.
enum class RuleShape : std::uint8_t {
    Plain, ///< "mesh dp=2": about the whole plan, without a selector.
    Colon, ///< "split SELECTOR : VALUE"
    Open, ///< "order SELECTOR VALUE"
};

constexpr std::int64_t kMostCount = 1 << 24; ///< Parts, devices, micro-batches, stages.
constexpr std::int64_t kMostExtent = std::int64_t{1} << 50; ///< Sizes of dimensions, bytes, nanoseconds.

/// The language of rows whose rule is an `R`; each kind specialises it beside its rule, with these members:
///
///     static constexpr std::array words{"stage"};
///         What its rows begin with. The first is also the rule's "type" in JSON.
///     static const char *wordOf(const R &rule);
///         Only if there are several words: the one that a row of `rule` begins with.
///     static constexpr RuleShape shape = RuleShape::Colon;
///     static constexpr const char *verb = "give a stage to";
///         What its rows do, as in "rows 1 and 3 both VERB layer:0"; operators follow if it has a selector.
///     static void describe(RuleForm &form, R &rule);
///         Its parts, in the order of its text: what is behind the word and the selector with its colon, as
///         far as the row's origin. Text and JSON are read and written by it (engine/table/rule_form.h); what
///         was written reads back as an equal rule, if the texts of JSON are UTF-8. The text may be empty.
template<typename R> struct RuleTraits;

} // namespace planloom
