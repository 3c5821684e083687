#pragma once

#include "engine/design/make_plan.h"
#include "widgets/scene/timeline_scene.h"

#include <functional>
#include <memory>
#include <stop_token>

namespace planloom {

/// An answer of the engine with its timeline prepared for drawing. Immutable.
struct PlanUpdate : PlanAnswer {
    TimelineSceneSnapshot scene{}; ///< Of `timeline`; null before `PlanGrade::Simulated`.
};
using PlanUpdateSnapshot = std::shared_ptr<const PlanUpdate>;

/// Makes updates of one request's answers. Its copies share the scene.
class UpdateMaker
{
public:
    /// @param begin  whose timeline needs no other scene; may be null
    explicit UpdateMaker(const PlanUpdateSnapshot &begin);
    /// The scene is made on the calling thread, a worker's.
    PlanUpdateSnapshot operator()(const PlanAnswer &answer) const;

private:
    std::shared_ptr<TimelineSceneSnapshot> m_scene;
};

/// `makePlan` for views.
/// @param begin  takes the place of `request.begin`, with its scene; may be null
void makeUpdates(PlanRequest request, const PlanUpdateSnapshot &begin, const std::stop_token &stop,
    const std::function<void(PlanUpdateSnapshot)> &report);

} // namespace planloom
