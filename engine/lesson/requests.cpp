// From a lesson's designs and deeds to what is planned.

#include "engine/base/text.h"
#include "engine/design/models/model_rows.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/framework.h"
#include "engine/lesson/lesson_blocks.h"
#include "engine/lesson/player.h"
#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

/// The line of the one row that begins as `text` does, or is it.
Result<std::int32_t> rowThatBegins(const TableDocument &table, const std::string &text, std::int32_t at)
{
    const auto row = parseRow(text);
    const std::string wanted = row ? print(*row) : std::string(trimmed(text));
    std::vector<std::int32_t> found;
    std::string list;
    for (const std::int32_t line : table.rowLines()) {
        const std::string printed = print(*table.lines()[static_cast<std::size_t>(line)]->row);
        list += (list.empty() ? "" : "; ") + printed;
        if (printed == wanted)
            return line;
        const bool isWhole = printed.size() > wanted.size() && printed[wanted.size()] == ' ';
        if (isWhole && printed.starts_with(wanted))
            found.push_back(line);
    }
    if (found.size() == 1)
        return found[0];
    if (found.empty())
        return lessonError(at, "there is no row that begins \"" + text + "\"", "there are: " + list);
    return lessonError(
        at, std::to_string(found.size()) + " rows begin \"" + text + "\"", "write more of the row");
}

} // namespace

LessonDesign filledUp(const Lesson &lesson, const LessonPlan &plan)
{
    return plan.open < 0 ? plan.design
                         : filledUp(plan.design, lesson.designs[static_cast<std::size_t>(plan.open)]);
}

Result<PlanRequest> requestOf(const Lesson &lesson, const LessonDesign &design, const LessonTarget &target,
    const std::stop_token &stop, const ModelSnapshot &known)
{
    PlanRequest request;
    ModelSource source{design.model, {}, {}};
    if (!isZooSpec(design.model)) {
        if (lesson.folder.empty())
            return lessonError(design.line, "\"" + design.model + "\" is no model of the zoo",
                "lessons that come with Planloom have no files: write zoo:...");
        // Asked again: the folder may have changed since the lesson was read.
        const auto file = fileOf(lesson.folder, design.model);
        if (!file)
            return lessonError(design.line, file.error().message, file.error().advice);
        source.source = file->string();
    }
    request.table = TableDocument(design.rows.value_or(""));
    source.options = withRows(std::move(source.options), request.table);
    const auto isKnown = [&] {
        if (!known)
            return false;
        ModelSource opened = known->source; // operator files that it needed stand in its options, too
        opened.options.operatorFiles = source.options.operatorFiles;
        return opened == source;
    };
    if (isKnown()) {
        request.model = known;
    } else {
        TRY(request.model, openModel(source, stop, KeepContent::No));
    }
    request.gallery = design.gallery;
    request.search = design.search.value_or(false);
    request.target.cluster = joinFramework(target.cluster.empty() ? design.cluster : target.cluster,
        target.framework.empty() ? design.framework : target.framework);
    request.target.deviceCount = design.devices;
    request.upTo = PlanGrade::Simulated;
    return request;
}

Result<PlanRequest> withAllRows(PlanRequest request, const std::stop_token &stop)
{
    if (request.gallery.empty() && !request.search)
        return request;
    PlanRequest rows = request;
    rows.upTo = PlanGrade::Planned;
    TRY(const PlanAnswerSnapshot answer, answerOf(rows, stop));
    if (answer->error)
        return *answer->error;
    request.table = answer->table;
    request.gallery.clear();
    request.search = false;
    return request;
}

Result<TableEdit> editOf(const TableDocument &table, const LessonDeed &deed)
{
    if (deed.kind == DeedKind::Row) {
        TRY(const Row row, parseRow(deed.what));
        return appendRows(table, {row});
    }
    if (deed.kind == DeedKind::Remove) {
        TRY(const std::int32_t line, rowThatBegins(table, deed.what, deed.line));
        return removeLines(table, {line});
    }
    if (deed.kind == DeedKind::Replace) {
        TRY(const Row row, parseRow(deed.by));
        TRY(const std::int32_t line, rowThatBegins(table, deed.what, deed.line));
        return replaceRow(table, line, row);
    }
    return lessonError(deed.line, "this is about no row");
}

Result<PlanRequest> afterDeeds(
    PlanRequest request, const std::vector<LessonDeed> &deeds, const std::stop_token &stop)
{
    for (const LessonDeed &deed : deeds) {
        if (deed.kind == DeedKind::Say)
            continue;
        if (deed.kind == DeedKind::Gallery) { // rows about the model stay, as in the window
            request.table = modelRows(request.table);
            request.gallery = deed.what;
            request.search = false;
            continue;
        }
        TRY(request, withAllRows(std::move(request), stop));
        if (deed.kind == DeedKind::Search) {
            request.search = true;
        } else if (deed.kind == DeedKind::Devices) {
            request.target.deviceCount = deed.devices;
        } else if (deed.kind == DeedKind::Cluster) {
            request.target.cluster = joinFramework(deed.what, splitFramework(request.target.cluster).second);
        } else {
            TRY(const TableEdit edit, editOf(request.table, deed));
            TRY_VOID(request.table.apply(edit));
        }
    }
    return request;
}

Result<PlanRequest> beginningOf(const Lesson &lesson, std::size_t step, const LessonTarget &target,
    const std::stop_token &stop, const ModelSnapshot &known)
{
    if (step >= lesson.steps.size() || lesson.steps[step].open < 0)
        return Error{ErrorCode::NotFound, "no design is open at this step", "add a block \"open\"", {}};
    std::size_t first = step;
    while (!lesson.steps[first].opens)
        --first; // a step before this one opened what it goes on with
    const auto open = static_cast<std::size_t>(lesson.steps[first].open);
    TRY(PlanRequest request, requestOf(lesson, lesson.designs[open], target, stop, known));
    for (; first < step; ++first)
        if (const auto &task = lesson.steps[first].task) {
            TRY(request, afterDeeds(std::move(request), task->solution, stop));
        }
    return request;
}

} // namespace planloom
