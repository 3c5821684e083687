// Any bytes are read as a lesson; what is wrong with them has a line, and expressions that were read have
// figures.

#include "engine/lesson/lesson.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char *>(data), size);
    const Lesson lesson = lessonFromText("fuzz", text);
    require(!lesson.steps.empty());
    for (const Error &problem : lesson.problems)
        require(!problem.message.empty() && problem.where.starts_with("lesson.md:"));
    for (const LessonStep &step : lesson.steps) {
        require(step.open < static_cast<std::int32_t>(lesson.designs.size()));
        for (const LessonClaim &claim : step.claims) { // as it was read, it reads again
            const auto again = conditionFromText(claim.text);
            require(again.has_value() && again->figures() == claim.condition.figures());
        }
    }
    const auto expression = expressionFromText(text);
    require(expression.has_value() || !expression.error().message.empty());
    return 0;
}
