#pragma once

#include "engine/report/report.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// A colour on light ground and on dark one, "#115e9a".
struct TalkColour {
    std::string light{};
    std::string dark{};
    friend auto operator<=>(const TalkColour &, const TalkColour &) = default;
};

/// An entry of a legend.
struct TalkLegendEntry {
    std::string words{};
    TalkColour colour{};
};

/// Of what size something is drawn: as a block of a micro-batch, or an operator.
enum class TalkDetail : std::uint8_t { Block, Span };

/// What the colours of one plan's spans say.
struct TalkColouring {
    std::string name{}; ///< "direction": one for each way of colouring, whatever the plan.
    std::vector<TalkLegendEntry> legend{};
    /// The colour of what begins with a row of the timeline's spans on a device. Called once for each thing
    /// that is drawn.
    std::function<TalkColour(std::int32_t device, std::size_t row, TalkDetail detail)> colourOf{};
    bool byDevice = false; ///< All that a device computes has one colour.
};

/// A plan that scenes show, coloured in the ways that they do.
struct TalkPlan {
    ReportedPlan reported{};
    std::vector<TalkColouring> colourings{};
};

/// One scene of a talk.
struct TalkScene {
    std::string title{};
    std::string note{}; ///< What is said about it; lines stay lines.
    std::optional<std::size_t> plan{}; ///< Index; nothing where there is none to show:
    std::string without{}; ///< then this says why.
    std::size_t colouring = 0; ///< Of its plan's.
    double begin = 0; ///< The stretch of the step that is seen, nanoseconds; the whole step if it is empty.
    double end = 0;
    std::optional<std::int64_t> moment{}; ///< Where the playhead is, nanoseconds.
    bool plays = false; ///< The step is played from there as the scene is gone to.
    bool timeline = true; ///< The timeline is seen;
    bool graph = false; ///< the operators are.
    std::int32_t seconds = 0; ///< How long it stays where scenes follow one another by themselves.
};

/// A talk: scenes in their order, and the plans they share.
struct Talk {
    std::string title{};
    std::vector<TalkPlan> plans{};
    std::vector<TalkScene> scenes{};
};

/// Operators are drawn one by one while the plans of a talk have no more of them than this together; of more,
/// blocks alone are.
constexpr std::size_t kMostTalkSpans = 60'000;
/// Bytes of the pictures of operators that a talk holds in all; what is beyond is left out.
constexpr std::size_t kMostTalkGraphs = 800'000;

/// The talk as one HTML file that plays in any browser, with nothing beside it: styles, script and data are
/// inside, nothing is fetched. Texts are texts. All that models, sessions and people wrote is escaped. Equal
/// talks are equal texts.
/// O(spans of its plans). Thread-safe if its colourings are.
std::string htmlOf(const Talk &talk);

/// What the page's script draws from, as JSON.
std::string talkJson(const Talk &talk);

} // namespace planloom
