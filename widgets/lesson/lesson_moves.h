#pragma once

#include "engine/lesson/lesson.h"

#include <string>
#include <vector>

namespace planloom {

class Workspace;

/// What *Show Me* does at once: a deed that changes the design, and the words said before it.
struct LessonMove {
    std::vector<const LessonDeed *> said{}; ///< Elements of the solution.
    const LessonDeed *deed = nullptr; ///< Null where words alone end a solution.
};

/// The moves of a solution, which must outlive them.
std::vector<LessonMove> movesOf(const std::vector<LessonDeed> &solution);

/// Carries a move out on what the window works on: one step of the history.
/// @return InvalidInput where the row to be changed is not there (any longer)
Result<void> carryOut(const LessonMove &move, Workspace &workspace);

} // namespace planloom
