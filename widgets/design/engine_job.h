#pragma once

#include "engine/base/result.h"
#include "engine/gesture/conflicts.h"
#include "engine/graph/batch.h"
#include "engine/graph/graph.h"
#include "engine/hardware/cluster.h"
#include "engine/plan/complete.h"
#include "engine/plan/plan.h"
#include "engine/plan/selector_index.h"
#include "engine/plan/table_text.h"
#include "engine/simulate/summary.h"
#include "engine/verify/verify.h"
#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// Where a model comes from.
struct ModelSource {
    std::string source{}; ///< Path of an .onnx file, or "zoo:...".
    std::string content{}; ///< Bytes of the file, where a session holds them; empty reads `source`.
    std::map<std::string, std::string> options{}; ///< "loss", "dim.<name>" as in `SessionModel::options`.
};

/// A model ready to be planned. Immutable.
struct OpenedModel {
    ModelSource source{}; ///< `content` is filled in for files.
    GraphSnapshot graph{}; ///< With its training step, where the model has a loss.
    std::shared_ptr<const SelectorIndex> index{}; ///< Of `graph`.
    BatchInfo batch{}; ///< Of `graph`.
    std::int64_t forwardOperators = 0;
    std::int64_t parameters = 0; ///< Elements of all weights.
    std::string remark{}; ///< Why it has no training step; empty if it has.
    std::string name{}; ///< For people: "gpt2_small_full", or "gpt" for a zoo model.
};
using ModelSnapshot = std::shared_ptr<const OpenedModel>;

/// Reads, imports and differentiates a model; AdamW is its optimizer.
/// @return the importer's errors; NotFound for a missing file; InvalidInput for wrong options; Cancelled
Result<ModelSnapshot> openModel(const ModelSource &source, std::stop_token stop);

/// How far an answer is.
enum class PlanGrade : std::uint8_t {
    Checked, ///< Rows are read and bound.
    Planned, ///< Every operator has its decision.
    Timed, ///< Step time, peaks and traffic are known: see `summary`.
    Simulated, ///< There is a timeline with its spans.
    Verified, ///< Proven, or refuted: see `verdict`.
};

struct PlanUpdate;
using PlanUpdateSnapshot = std::shared_ptr<const PlanUpdate>;

/// What to plan: a snapshot of everything a plan follows from.
struct PlanRequest {
    std::uint64_t revision = 0; ///< Given back in every update.
    ModelSnapshot model{}; ///< Not null.
    std::string tableText{};
    std::string gallery{}; ///< If not empty, its rows take the place of `tableText`.
    std::string cluster{}; ///< "dgx-a100", without a size; a name of one's own if `clusterJson` is given; or a file.
    std::string clusterJson{}; ///< A cluster that is no profile; or what that file held, should it be gone; may be empty.
    std::int32_t deviceCount = 1;
    PlanGrade upTo = PlanGrade::Verified; ///< The last grade: previews need no proof.
    PlanUpdateSnapshot begin{}; ///< An answer for the same rows that has got as far as a timeline; may be null.
};

/// What is known of one line of the table's text.
struct RowLine {
    std::int32_t line = 0; ///< 0-based, in the text.
    std::string text{}; ///< The row without its note, as printed.
    RowReport report{}; ///< `bound` of a row that is off is what it would act on if it were on; -1 if not counted.
    std::string remark{}; ///< What a limit that holds was measured at: "peak 31.0 GiB of 40.0 GiB"; empty for other rows.
    friend bool operator==(const RowLine &, const RowLine &) = default;
};

/// One answer. Later ones hold all that earlier ones did. Immutable.
struct PlanUpdate {
    std::uint64_t revision = 0;
    PlanGrade grade = PlanGrade::Checked;
    bool final = false; ///< No better answer follows.
    ModelSnapshot model{};
    std::string tableText{}; ///< As requested, or the gallery's rows.
    std::vector<RowLine> rows{};
    std::vector<Error> textErrors{}; ///< Lines that are no rows; `where` is "line:LINE:COLUMN", from 1.
    std::vector<RowConflict> conflicts{}; ///< Rows that can't hold together, with ways out.
    std::optional<Error> error{}; ///< Why there is no plan, apart from errors of rows.
    Cluster cluster{};
    std::shared_ptr<const Plan> plan{};
    TimelineSceneSnapshot scene{};
    TimelineSummary summary{}; ///< From `PlanGrade::Timed` on.
    std::vector<std::int64_t> operatorNanoseconds{}; ///< By operator: compute time of all devices in one step.
    std::optional<VerifyReport> verdict{};

    bool isTimed() const { return grade >= PlanGrade::Timed; }
    /// Lines and rows that keep the table from being carried out.
    std::size_t errorCount() const;
};

/// Plans `request` in grades and reports each; the last report is final, unless `stop` is requested.
void makePlan(
    const PlanRequest &request, std::stop_token stop, const std::function<void(PlanUpdateSnapshot)> &report);

/// Lines of `text` that hold a row, 0-based: those that are neither empty, nor notes, nor among `errors`.
std::vector<std::int32_t> linesOfRows(const std::string &text, const std::vector<Error> &errors);

/// "line:3:7" -> {3, 7}; nothing for other places.
struct TextPlace {
    std::int32_t line = 0; ///< From 1.
    std::int32_t column = 0; ///< From 1.
};
std::optional<TextPlace> textPlaceOf(const Error &error);

} // namespace planloom
