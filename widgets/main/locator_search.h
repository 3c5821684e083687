#pragma once

#include <QtCore/QString>
#include <QtCore/QStringList>

#include "engine/gesture/gesture.h"
#include "widgets/design/plan_update.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What the palette and *Go to Anything* can lead to.
enum class LocatorKind : std::uint8_t { Command, Write, Operator, Row, Time, Device, Select };

/// A command as the search sees it.
struct LocatorCommand {
    QString id{};
    QString text{};
    QString category{};
    QString keys{};
    bool enabled = true;
    int recent = -1; ///< 0 for the one used last; -1 for those not used lately.
    QString menu{}; ///< In which it stands, from the bar: "File Export"; empty if in none.
};

/// Names of a model's operators in lower case, made once per model.
struct LocatorNames {
    ModelSnapshot model{};
    std::vector<QString> names{}; ///< By operator.
};
using LocatorNamesSnapshot = std::shared_ptr<const LocatorNames>;
/// O(operators).
LocatorNamesSnapshot locatorNames(const ModelSnapshot &model);

/// All that is searched: snapshots.
struct LocatorSources {
    std::vector<LocatorCommand> commands{};
    ModelSnapshot model{};
    LocatorNamesSnapshot names{}; ///< Of `model`; made anew if they are of another one.
    GestureContextSnapshot context{}; ///< Rows, for `#` and for rows typed in full; may be null.
    PlanUpdateSnapshot plan{}; ///< The last with a timeline; may be null.
    std::int32_t deviceCount = 0;
    std::vector<OperatorId> selected{}; ///< What a row typed without a selector speaks of.
    bool commandsOnly =
        false; ///< The palette: no prefix is needed for commands, and nothing else is looked for.
};

/// One line of the list.
struct LocatorEntry {
    LocatorKind kind = LocatorKind::Command;
    QString title{};
    QString detail{};
    QString keys{}; ///< Shortcut, in the platform's words.
    bool enabled = true;
    int score = 0;
    QString command{}; ///< Command: its id.
    OperatorId op{};
    std::int32_t line = -1; ///< Row: 0-based line of the table.
    double nanoseconds = 0; ///< Time.
    DeviceId device{};
    std::vector<OperatorId> operators{}; ///< Select: what the query selects.
    std::shared_ptr<const Proposal> proposal{}; ///< Write; refused ones are shown with the reason.
};

/// What was found, best first, and the names to pass along with the next search.
struct LocatorResults {
    QString text{};
    std::vector<LocatorEntry> entries{};
    LocatorNamesSnapshot names{};
};

constexpr std::size_t kMostLocatorEntries = 60;

/// Answers `text`: `@` operators, `=` what a selector selects, `#` rows, `:` times, `d` and a number devices,
/// `>` commands, else all of them; what reads like a row is offered to be written. O(operators), and stops
/// soon when asked to: for a worker.
LocatorResults searchLocator(const LocatorSources &sources, const QString &text, std::stop_token stop);

/// "12.5 ms", "800us", "3" (in the plan's own unit: ms) -> nanoseconds; nothing for other texts.
std::optional<double> timeFromText(const QString &text);

} // namespace planloom
