#pragma once

#include <QtCore/QString>
#include <QtCore/QStringList>

#include "engine/base/result.h"
#include "sessions/history.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Which of the two canvases a scene shows while it is presented.
enum class SceneCanvases : std::uint8_t { Both, Graph, Timeline };
constexpr int kSceneCanvasesCount = 3;

/// A named state of a session: which plan, from where it is seen, what is selected, at which moment of the
/// step, and what is said about it.
struct Scene {
    QString name{};
    QString note{}; ///< Plain text.
    StepId step = kRootStep; ///< Of the history.
    std::int32_t branch = 0; ///< On which it was; another one that holds the step will do.
    std::string timeline{}; ///< `TimelineView::viewState`.
    /// The stretch of the step that is seen, nanoseconds; nothing for all of it.
    std::optional<std::pair<double, double>> span{};
    QString graph{}; ///< `DagView::cameraState`.
    bool wholeGraph = true; ///< All of it was in sight.
    int colouring = 0; ///< A `TimelineColouring`,
    int graphColouring = 0; ///< and a `ColourBy`.
    SceneCanvases canvases = SceneCanvases::Both;
    QStringList docks{}; ///< That were in front, by name.
    /// Ranges of the selected operators, first and number of each, ascending.
    std::vector<std::pair<std::int32_t, std::int32_t>> selected{};
    std::optional<double> moment{}; ///< Where the playhead is, nanoseconds.
    bool plays = false; ///< The step plays from there once the scene is shown.
    int seconds = 60; ///< That it stays while scenes follow one another by themselves.
    friend bool operator==(const Scene &, const Scene &) = default;
};

constexpr std::size_t kMostScenes = 500;
constexpr int kMostSceneName = 200; ///< Characters.
constexpr int kMostSceneNote = 20'000;
constexpr int kMostSceneSeconds = 3600;

/// Scenes as JSON, for the session.
std::string sceneText(const std::vector<Scene> &scenes);
/// What `sceneText` gave. Sessions come from strangers: sizes are bounded, and states of views are texts that
/// the views read as they read those of any session. Empty for an empty text.
/// @return InvalidInput that says which scene is wrong and how
Result<std::vector<Scene>> readScenes(const std::string &text);

/// The timeline's state with the scene's stretch of time in sight on a canvas that is `width` pixels wide.
std::string stateOnWidth(const Scene &scene, double width);

/// The note's first line that is not empty, for lists.
QString firstLineOf(const Scene &scene);

/// Operators as ranges and back; what is at `operators` and beyond is left out.
std::vector<std::pair<std::int32_t, std::int32_t>> rangesOfOperators(const std::vector<OperatorId> &selected);
std::vector<OperatorId> operatorsOfRanges(
    const std::vector<std::pair<std::int32_t, std::int32_t>> &ranges, std::size_t operators);

} // namespace planloom
