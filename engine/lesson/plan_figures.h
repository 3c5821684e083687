#pragma once

#include "engine/analyse/memory_fit.h"
#include "engine/analyse/statistics.h"
#include "engine/analyse/steady_state.h"
#include "engine/analyse/waterfall.h"
#include "engine/design/make_plan.h"
#include "engine/lesson/expression.h"
#include "engine/lesson/player.h"
#include "engine/naming/plan_shape.h"
#include "engine/table/selector_index.h"

#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// The figures of one plan. What is expensive is worked out when it is asked for, and kept. Not thread-safe.
class PlanFigures
{
public:
    explicit PlanFigures(PlanAnswerSnapshot answer, std::optional<LessonRun> run = {});

    const PlanAnswerSnapshot &answer() const { return m_answer; }
    /// @return NotFound where the plan has no such figure; the plan's own error where there is no plan.
    /// `FigureName::plan` is passed by.
    Result<FigureValue> valueOf(const FigureName &name);

private:
    Result<FigureValue> ofStep(const FigureName &name);
    Result<FigureValue> ofDevice(const FigureName &name);
    Result<FigureValue> ofMemory(const FigureName &name);
    Result<FigureValue> ofTraffic(const FigureName &name) const;
    Result<FigureValue> ofShape(const FigureName &name);
    Result<FigureValue> ofPipeline(const FigureName &name);
    Result<FigureValue> ofSelection(const FigureName &name);
    Result<FigureValue> ofRows(const FigureName &name) const;
    Result<FigureValue> ofRun(const FigureName &name) const;
    Result<FigureValue> ofWords(const FigureName &name);
    Result<FigureValue> ofTruth(const FigureName &name);

    Result<void> needPlan() const;
    Result<void> needTimes() const; ///< And a plan.
    Result<void> needSpans() const; ///< And times.
    /// Of the cluster's device with this number, its place in a unit. @return NotFound beyond the plan's
    Result<std::size_t> localOf(std::int32_t device) const;
    /// That a figure of memory is of: the device named, or the one with the largest peak.
    Result<const RankMemory *> rankOf(const FigureName &name);
    const SelectorIndex &index();

    PlanAnswerSnapshot m_answer; ///< Not null.
    std::optional<LessonRun> m_run;
    std::optional<StepParts> m_parts{};
    std::optional<std::pair<double, double>> m_communication{}; ///< All, and hidden: nanoseconds.
    std::optional<std::vector<RankMemory>> m_ranks{};
    std::optional<PlanShape> m_shape{};
    std::optional<std::optional<SteadyState>> m_steady{};
    std::optional<std::vector<std::int32_t>> m_inFlight{};
    std::shared_ptr<const SelectorIndex> m_index{};
};

} // namespace planloom
