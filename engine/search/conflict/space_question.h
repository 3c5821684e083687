#pragma once

#include "engine/base/result.h"
#include "engine/table/table.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace planloom {

/// What is asked of rows beside whether a plan can be made of them, where a search is to make it: whether its
/// space has one. It is asked of rows whose completion does not keep to what they say of degrees
/// (`brokenDegrees`), and of those that it refuses and a mesh that they leave to the search may help. Empty
/// where no search is asked for.
struct SpaceQuestion {
    /// @param isOver  asked now and then: time is over
    /// @return why there is none, at an operator if it is about one; Cancelled if time was over before that
    /// was known
    std::function<Result<void>(const ConstraintTable &rows, const std::function<bool()> &isOver)> holds{};
    /// What plans can have of a degree if no row is in the way, ascending; empty if that is not known.
    std::function<std::vector<std::int32_t>(Degree degree)> valuesOf{};
};

} // namespace planloom
