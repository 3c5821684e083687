#pragma once

#include "engine/base/result.h"
#include "engine/lesson/expression.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace planloom {

/// What a plan of a lesson is made from. Members that are empty (or 0) are those of the `open` before.
struct LessonDesign {
    std::string model{}; ///< "zoo:...", or a file's name inside the lesson's folder.
    std::string cluster{}; ///< A profile's name.
    std::string framework{};
    std::int32_t devices = 0;
    std::string gallery{};
    std::optional<std::string> rows{}; ///< Text of a table; with `gallery` behind its rows.
    std::int32_t line = 0; ///< Of the file, from 1.
};

/// A plan that texts and conditions compare with.
struct LessonPlan {
    std::string name{};
    LessonDesign design{};
    std::int32_t open = 0; ///< Index into `Lesson::designs` of the `open` that fills up what it leaves out.
};

/// A text with values of the engine in it.
struct LessonText {
    /// A piece of it: words as they stand, or an expression whose value is written there.
    using Piece = std::variant<std::string, Expression>;
    std::vector<Piece> pieces{};
    std::int32_t line = 0;
};

enum class ProseKind : std::uint8_t { Paragraph, Item, Picture };

/// A paragraph, an item of a list, or a picture. Its text is Markdown within the line: `code`, **strong**,
/// *emphasised* and links.
struct Prose {
    ProseKind kind = ProseKind::Paragraph;
    LessonText text{}; ///< Of a picture, what is on it.
    std::string picture{}; ///< File inside the lesson's folder.
};

/// What is shown of the window.
struct LessonShow {
    std::string canvas{}; ///< "graph", "timeline", "both"; empty leaves it, as of the rest.
    std::string dock{};
    std::string colour{};
    std::string select{}; ///< A selector.
    std::string moment{}; ///< "0.4", "peak of device 0".
    std::int32_t line = 0;
};

enum class PlaceKind : std::uint8_t { Operator, Device, Block, Row, Dock, Command, StepTime };

/// What an arrow points at, and what it says.
struct LessonPoint {
    PlaceKind kind = PlaceKind::Device;
    std::string what{}; ///< Selector, row's text, dock's or command's name.
    std::int32_t device = -1;
    std::int32_t stage = -1;
    std::int32_t microBatch = -1;
    bool backward = false;
    LessonText words{};
    std::int32_t line = 0;
};

/// An answer that can be chosen.
struct LessonAnswer {
    LessonText text{};
    LessonText reply{};
    bool right = false; ///< Where there is no condition.
    std::optional<Condition> condition{}; ///< It is right where this holds.
};

struct LessonChoice {
    LessonText question{};
    std::vector<LessonAnswer> answers{};
    std::int32_t line = 0;
};

struct LessonNumber {
    LessonText question{};
    Expression answer{};
    Expression tolerance{};
    bool relative = true; ///< The tolerance is a share of the answer; else in the answer's unit.
    LessonText right{};
    LessonText wrong{};
    std::int32_t line = 0;
};

/// What a task asks of the learner's plan.
struct LessonNeed {
    Condition condition{};
    std::optional<LessonText> otherwise{}; ///< What is said where it does not hold; else made of the condition.
    std::int32_t line = 0;
};

enum class DeedKind : std::uint8_t { Say, Row, Remove, Replace, Gallery, Devices, Cluster, Search };

/// A step of a solution: one step of the history.
struct LessonDeed {
    DeedKind kind = DeedKind::Say;
    std::string what{}; ///< Row, text, gallery plan, cluster.
    std::string by{}; ///< Of `Replace`, the new row.
    std::int32_t devices = 0;
    LessonText words{}; ///< Of `Say`.
    std::int32_t line = 0;
};

/// A plan that the task refuses.
struct LessonWrong {
    std::string says{}; ///< A part of what is said of it.
    std::optional<LessonDesign> design{}; ///< Either this,
    std::vector<LessonDeed> deeds{}; ///< or these, from the step's beginning.
    std::int32_t line = 0;
};

struct LessonTask {
    LessonText goal{};
    std::vector<LessonNeed> needs{};
    std::vector<LessonText> hints{};
    std::vector<LessonDeed> solution{};
    std::vector<LessonWrong> wrong{};
    std::int32_t line = 0;
};

using LessonQuestion = std::variant<LessonChoice, LessonNumber>;
/// What a step is read in, in the file's order.
using LessonPart = std::variant<Prose, LessonQuestion>;

struct LessonClaim {
    Condition condition{};
    std::string text{}; ///< As written.
    std::int32_t line = 0;
};

/// What is read, asked and done before *Next*.
struct LessonStep {
    std::string title{};
    std::vector<LessonPart> parts{};
    std::int32_t open = 0; ///< Index into `Lesson::designs`: that of the step or the last one before it.
    bool opens = false; ///< It is the step's own.
    std::optional<LessonShow> show{};
    std::vector<LessonPoint> points{};
    std::vector<LessonClaim> claims{};
    std::optional<LessonTask> task{};
    std::int32_t line = 0;
};

/// A lesson as its file has it.
struct Lesson {
    std::string name{}; ///< Of the folder.
    std::filesystem::path folder{}; ///< Empty for one that is compiled in.
    std::string title{};
    std::string idea{};
    std::int32_t order = 0;
    std::int32_t minutes = 0;
    std::vector<LessonDesign> designs{}; ///< Of the `open` blocks, each with what it leaves out filled in.
    std::vector<LessonPlan> plans{};
    std::vector<LessonStep> steps{}; ///< The first is what stands before the first heading.
    /// What is wrong with the file: `where` is "lesson.md:LINE". The blocks that these are about are left
    /// out; the rest opens.
    std::vector<Error> problems{};
};

/// Reads a lesson's text. Never fails: what cannot be read is among the problems. Does not look at the disk
/// but for whether files that it names are inside `folder` and there (not asked where `folder` is empty).
/// O(length). Thread-safe.
Lesson lessonFromText(const std::string &name, const std::string &text, const std::filesystem::path &folder = {});

/// Reads `folder`/lesson.md, of at most 1 MiB.
/// @return NotFound, Io; ResourceLimit for a larger file. Waits for the disk.
Result<Lesson> readLesson(const std::filesystem::path &folder);

/// The lessons of resources/lessons, by their order. They are compiled in.
const std::vector<Lesson> &bundledLessons();

} // namespace planloom
