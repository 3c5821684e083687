#include "engine/lesson/lesson_blocks.h"

#include "engine/base/nearest_name.h"
#include "engine/base/text.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/gallery/gallery.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/framework.h"
#include "engine/table/selector.h"
#include "engine/table/table_document.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace planloom {

namespace {

using Words = std::vector<std::string_view>;

const Words kDesignKeys{"model", "cluster", "devices", "framework", "gallery", "search", "rows"};
const Words kDeedKeys{"say", "row", "remove", "replace", "gallery", "devices", "cluster", "search"};
constexpr std::int32_t kMostDevices = 16384;

/// "key: value", or an item: its key is then "-", "+" or "?".
struct Field {
    std::string key{};
    std::string value{};
    std::int32_t line = 0;
};

/// Lines without remarks and empty ones; what begins with two spaces goes on with the line before it.
std::vector<LessonLine> wholeLines(const LessonBlock &block)
{
    std::vector<LessonLine> lines;
    for (const LessonLine &each : block.lines) {
        const std::string_view text = trimmed(each.text);
        if (text.empty() || each.text.starts_with('#'))
            continue;
        if (!lines.empty() && each.text.starts_with("  "))
            lines.back().text += " " + std::string(text);
        else
            lines.push_back({std::string(text), each.line});
    }
    return lines;
}

bool isItem(std::string_view text)
{
    return text.starts_with("- ") || text.starts_with("+ ") || text.starts_with("? ");
}

Result<Field> fieldOf(const LessonLine &line, const Words &keys, std::string_view items)
{
    if (isItem(line.text) && items.find(line.text[0]) != std::string_view::npos)
        return Field{line.text.substr(0, 1), std::string(trimmed(line.text.substr(1))), line.line};
    const std::size_t colon = line.text.find(':');
    const std::string key(trimmed(line.text.substr(0, colon)));
    if (colon == std::string::npos || std::find(keys.begin(), keys.end(), key) == keys.end())
        return unknownWord(line.line, "a line that begins with a key", key.substr(0, 40), keys);
    return Field{key, std::string(trimmed(line.text.substr(colon + 1))), line.line};
}

/// All fields. Those of `keys` that are not in `repeated` may be there once.
Result<std::vector<Field>> fieldsOf(
    const LessonBlock &block, const Words &keys, std::string_view items = {}, const Words &repeated = {})
{
    std::vector<Field> fields;
    for (const LessonLine &line : wholeLines(block)) {
        TRY(Field field, fieldOf(line, keys, items));
        const bool isOnce =
            field.key.size() > 1 && std::find(repeated.begin(), repeated.end(), field.key) == repeated.end();
        if (isOnce && std::any_of(fields.begin(), fields.end(), [&](const Field &each) {
                return each.key == field.key;
            }))
            return lessonError(field.line, "\"" + field.key + "\" is said twice", "leave one of them out");
        if (field.value.empty() && field.key != "search")
            return lessonError(field.line, "nothing stands behind \"" + field.key + "\"");
        fields.push_back(std::move(field));
    }
    return fields;
}

const Field *findField(const std::vector<Field> &fields, std::string_view key)
{
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const Field &field) { return field.key == key; });
    return found == fields.end() ? nullptr : &*found;
}

Result<Field> requireField(const LessonBlock &block, const std::vector<Field> &fields, std::string_view key)
{
    if (const Field *field = findField(fields, key))
        return *field;
    return lessonError(block.line, "the block \"" + block.name + "\" lacks \"" + std::string(key) + "\"",
        "add a line \"" + std::string(key) + ": ...\"");
}

Result<std::int32_t> integerIn(
    std::string_view text, std::int32_t line, std::string_view what, std::int32_t least, std::int32_t most)
{
    std::int32_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size() || number < least || number > most)
        return lessonError(line,
            "expected " + std::string(what) + " from " + std::to_string(least) + " to " + std::to_string(most)
                + ", found \"" + std::string(text.substr(0, 40)) + "\"");
    return number;
}

/// What stands between bars, at most `most` pieces. Bars in values do not count, nor those in brackets and
/// quotes of a condition, which comes first; "\|" is a bar that is meant as such.
std::vector<std::string> partsOf(std::string_view text, std::size_t most, bool hasCondition)
{
    std::vector<std::string> parts(1);
    int braces = 0;
    int brackets = 0;
    bool isQuoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '\\' && at + 1 < text.size() && text[at + 1] == '|') {
            parts.back() += text[++at];
            continue;
        }
        const bool isCondition = hasCondition && parts.size() == 1;
        braces += c == '{' ? 1 : c == '}' && braces > 0 ? -1 : 0;
        if (isCondition) {
            brackets += c == '(' ? 1 : c == ')' && brackets > 0 ? -1 : 0;
            isQuoted = c == '"' ? !isQuoted : isQuoted;
        }
        if (c == '|' && braces == 0 && !(isCondition && (brackets > 0 || isQuoted)) && parts.size() < most)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    for (std::string &part : parts)
        part = trimmed(part);
    return parts;
}

Error atLine(const Error &error, std::int32_t line)
{
    return lessonError(line, error.message, error.advice);
}

/// What names plans that there are not.
template<typename Formula>
Result<void> checkPlans(const LessonSetting &setting, const Formula &formula, std::int32_t line)
{
    for (const FigureName &figure : formula.figures())
        if (!figure.plan.empty() && !setting.plans.contains(figure.plan))
            return unknownWord(
                line, "the name of a plan", figure.plan, Words(setting.plans.begin(), setting.plans.end()));
    return {};
}

Result<Expression> expressionIn(const LessonSetting &setting, const std::string &text, std::int32_t line)
{
    auto expression = expressionFromText(text);
    if (!expression)
        return lessonError(line, "in \"" + text.substr(0, 80) + "\": " + expression.error().message,
            expression.error().advice);
    TRY_VOID(checkPlans(setting, *expression, line));
    return expression;
}

Result<Condition> conditionIn(const LessonSetting &setting, const std::string &text, std::int32_t line)
{
    auto condition = conditionFromText(text);
    if (!condition)
        return lessonError(line, "in \"" + text.substr(0, 80) + "\": " + condition.error().message,
            condition.error().advice);
    TRY_VOID(checkPlans(setting, *condition, line));
    return condition;
}

Result<std::string> clusterIn(const Field &field)
{
    const std::vector<std::string> names = clusterNames();
    const std::string name = field.value.substr(0, field.value.find(':'));
    if (std::find(names.begin(), names.end(), name) == names.end())
        return unknownWord(field.line, "the profile of a cluster", name, Words(names.begin(), names.end()));
    if (name.size() < field.value.size())
        TRY_VOID(integerIn(
            field.value.substr(name.size() + 1), field.line, "a number of devices", 1, kMostDevices));
    return field.value;
}

Result<std::string> galleryOf(const Field &field)
{
    const std::string name = field.value.substr(0, field.value.find(':'));
    Words names;
    for (const GalleryEntry &entry : builtInGallery().entries)
        names.push_back(entry.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
        return unknownWord(field.line, "a plan of the gallery", name, names);
    return field.value;
}

Result<bool> yesOrNo(const Field &field)
{
    if (field.value == "yes" || field.value == "no")
        return field.value == "yes";
    return lessonError(field.line, "expected yes or no, found \"" + field.value.substr(0, 40) + "\"");
}

Result<void> checkRow(const std::string &text, std::int32_t line)
{
    if (const auto row = parseRow(text); !row)
        return atLine(row.error(), line);
    return {};
}

Result<void> readDesignField(const LessonSetting &setting, const Field &field, LessonDesign &design)
{
    if (field.key == "model") {
        if (!isZooSpec(field.value))
            if (const auto file = fileOf(setting.folder, field.value); !file)
                return atLine(file.error(), field.line);
        design.model = field.value;
    } else if (field.key == "cluster") {
        TRY(design.cluster, clusterIn(field));
    } else if (field.key == "devices") {
        TRY(design.devices, integerIn(field.value, field.line, "a number of devices", 1, kMostDevices));
    } else if (field.key == "framework") {
        const std::vector<std::string> names = frameworkNames();
        if (std::find(names.begin(), names.end(), field.value) == names.end())
            return unknownWord(field.line, "a framework", field.value, Words(names.begin(), names.end()));
        design.framework = field.value;
    } else if (field.key == "gallery") {
        TRY(design.gallery, galleryOf(field));
    } else if (field.key == "search") {
        TRY(design.search, yesOrNo(field));
    }
    return {};
}

/// The lines behind `rows:`, and the block without them.
Result<std::pair<LessonBlock, std::optional<std::string>>> rowsApart(const LessonBlock &block)
{
    const auto found = std::find_if(block.lines.begin(), block.lines.end(),
        [](const LessonLine &each) { return trimmed(each.text) == "rows:"; });
    if (found == block.lines.end())
        return std::pair{block, std::optional<std::string>()};
    LessonBlock rest = block;
    rest.lines.assign(block.lines.begin(), found);
    std::string rows;
    for (auto each = found + 1; each != block.lines.end(); ++each)
        rows += each->text + "\n";
    if (const auto errors = TableDocument(rows).errors(); !errors.empty()) {
        const std::string &where = errors.front().where; // "line:LINE:COLUMN"
        std::int32_t row = 1;
        if (where.starts_with("line:"))
            std::from_chars(where.data() + 5, where.data() + where.size(), row);
        return atLine(errors.front(), found->line + row);
    }
    return std::pair{rest, std::optional(rows)};
}

Result<LessonDeed> deedOf(const LessonSetting &setting, const Field &field)
{
    LessonDeed deed{.line = field.line};
    if (field.key == "say") {
        TRY(deed.words, textIn(setting, field.value, field.line));
    } else if (field.key == "row") {
        TRY_VOID(checkRow(field.value, field.line));
        deed.kind = DeedKind::Row;
        deed.what = field.value;
    } else if (field.key == "remove") {
        deed.kind = DeedKind::Remove;
        deed.what = field.value;
    } else if (field.key == "replace") {
        const std::size_t arrow = field.value.find(" -> ");
        if (arrow == std::string::npos)
            return lessonError(
                field.line, "expected \"ROW -> ROW\", found \"" + field.value.substr(0, 80) + "\"");
        deed.kind = DeedKind::Replace;
        deed.what = trimmed(field.value.substr(0, arrow));
        deed.by = trimmed(field.value.substr(arrow + 4));
        TRY_VOID(checkRow(deed.by, field.line));
    } else if (field.key == "gallery") {
        deed.kind = DeedKind::Gallery;
        TRY(deed.what, galleryOf(field));
    } else if (field.key == "devices") {
        deed.kind = DeedKind::Devices;
        TRY(deed.devices, integerIn(field.value, field.line, "a number of devices", 1, kMostDevices));
    } else if (field.key == "cluster") {
        deed.kind = DeedKind::Cluster;
        TRY(deed.what, clusterIn(field));
    } else {
        deed.kind = DeedKind::Search;
    }
    return deed;
}

/// "device 2", "forward 3 of stage 1".
Result<void> readPlace(const Field &field, LessonPoint &point)
{
    const std::string_view text = field.value;
    const std::string_view word = text.substr(0, text.find(' '));
    const std::string_view rest = word.size() < text.size() ? trimmed(text.substr(word.size())) : "";
    constexpr std::int32_t kMost = 1 << 20;
    if (text == "step time") {
        point.kind = PlaceKind::StepTime;
        return {};
    }
    if (word == "device") {
        TRY(point.device, integerIn(rest, field.line, "the number of a device", 0, kMost));
        return {};
    }
    if (word == "forward" || word == "backward") {
        const std::size_t of = rest.find(" of stage ");
        if (of == std::string_view::npos)
            return lessonError(field.line, "expected \"" + std::string(word) + " M of stage N\"");
        point.kind = PlaceKind::Block;
        point.backward = word == "backward";
        TRY(point.microBatch, integerIn(trimmed(rest.substr(0, of)), field.line, "a micro-batch", 0, kMost));
        TRY(point.stage, integerIn(trimmed(rest.substr(of + 10)), field.line, "a stage", 0, kMost));
        return {};
    }
    const Words kinds{"operator", "row", "dock", "command"};
    const auto kind = std::find(kinds.begin(), kinds.end(), word);
    if (kind == kinds.end() || rest.empty())
        return lessonError(field.line,
            "expected a place to point at, found \"" + field.value.substr(0, 60) + "\"",
            "there are: operator SELECTOR, device N, forward M of stage N, backward M of stage N, row TEXT, "
            "dock NAME, command ID, step time");
    constexpr std::array kKinds{PlaceKind::Operator, PlaceKind::Row, PlaceKind::Dock, PlaceKind::Command};
    point.kind = kKinds[static_cast<std::size_t>(kind - kinds.begin())];
    point.what = rest;
    if (point.kind == PlaceKind::Operator)
        if (const auto selector = parseSelector(point.what); !selector)
            return atLine(selector.error(), field.line);
    return {};
}

const Words kDocks{"memory", "constraints", "gallery", "history", "plans", "inspector", "schedule", "run",
    "problems", "none"};

Result<void> checkMoment(const Field &field)
{
    constexpr std::string_view kPeak = "peak of device ";
    if (field.value.starts_with(kPeak)) {
        TRY_VOID(
            integerIn(field.value.substr(kPeak.size()), field.line, "the number of a device", 0, 1 << 20));
        return {};
    }
    double share = -1;
    const char *last = field.value.data() + field.value.size();
    const auto [end, failure] = std::from_chars(field.value.data(), last, share);
    if (failure != std::errc{} || end != last || !(share >= 0 && share <= 1))
        return lessonError(field.line,
            "expected a share of the step from 0 to 1, or \"peak of device N\", found \""
                + field.value.substr(0, 40) + "\"");
    return {};
}

} // namespace

Result<LessonText> textIn(const LessonSetting &setting, const std::string &text, std::int32_t line)
{
    auto read = lessonTextFrom(text, line);
    if (!read)
        return atLine(read.error(), line);
    for (const LessonText::Piece &piece : read->pieces)
        if (const auto *expression = std::get_if<Expression>(&piece))
            TRY_VOID(checkPlans(setting, *expression, line));
    return read;
}

Result<void> readAbout(const LessonBlock &block, Lesson &lesson)
{
    TRY(const auto fields, fieldsOf(block, {"order", "minutes", "idea"}));
    for (const Field &field : fields) {
        if (field.key == "idea") {
            lesson.idea = field.value;
        } else if (field.key == "order") {
            TRY(lesson.order, integerIn(field.value, field.line, "a number", 0, 1'000'000));
        } else {
            TRY(lesson.minutes, integerIn(field.value, field.line, "minutes", 0, 10'000));
        }
    }
    return {};
}

Result<LessonDesign> designIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonDesign design{.line = block.line};
    TRY(auto apart, rowsApart(block));
    design.rows = std::move(apart.second);
    TRY(const auto fields, fieldsOf(apart.first, kDesignKeys));
    for (const Field &field : fields)
        TRY_VOID(readDesignField(setting, field, design));
    return design;
}

Result<LessonShow> showIn(const LessonBlock &block)
{
    LessonShow show{.line = block.line};
    TRY(const auto fields, fieldsOf(block, {"canvas", "dock", "colour", "select", "moment"}));
    for (const Field &field : fields) {
        const Words canvases{"graph", "timeline", "both"};
        if (field.key == "canvas"
            && std::find(canvases.begin(), canvases.end(), field.value) == canvases.end())
            return unknownWord(field.line, "a canvas", field.value, canvases);
        if (field.key == "dock" && std::find(kDocks.begin(), kDocks.end(), field.value) == kDocks.end())
            return unknownWord(field.line, "a dock", field.value, kDocks);
        if (field.key == "select")
            if (const auto selector = parseSelector(field.value); !selector)
                return atLine(selector.error(), field.line);
        if (field.key == "moment")
            TRY_VOID(checkMoment(field));
        (field.key == "canvas"          ? show.canvas
                : field.key == "dock"   ? show.dock
                : field.key == "colour" ? show.colour
                : field.key == "select" ? show.select
                                        : show.moment) = field.value;
    }
    return show;
}

Result<LessonPoint> pointIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonPoint point{.line = block.line};
    TRY(const auto fields, fieldsOf(block, {"at", "words"}));
    TRY(const Field at, requireField(block, fields, "at"));
    TRY(const Field words, requireField(block, fields, "words"));
    TRY_VOID(readPlace(at, point));
    TRY(point.words, textIn(setting, words.value, words.line));
    return point;
}

Result<LessonChoice> choiceIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonChoice choice{.line = block.line};
    std::vector<LessonLine> lines = wholeLines(block);
    if (lines.empty() || isItem(lines[0].text))
        return lessonError(block.line, "a choice begins with its question, in a line of its own");
    TRY(choice.question, textIn(setting, lines[0].text, lines[0].line));
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const std::string &text = lines[i].text;
        const std::int32_t line = lines[i].line;
        if (!isItem(text))
            return lessonError(line, "expected an answer, found \"" + text.substr(0, 60) + "\"",
                "an answer begins with \"- \" (wrong), \"+ \" (right) or \"? \" (right where a condition "
                "holds)");
        const bool isConditional = text[0] == '?';
        std::vector<std::string> parts = partsOf(text.substr(1), isConditional ? 3 : 2, isConditional);
        LessonAnswer answer{.right = text[0] == '+'};
        if (isConditional) {
            TRY(answer.condition, conditionIn(setting, parts[0], line));
            parts.erase(parts.begin());
        }
        if (parts.empty() || parts[0].empty())
            return lessonError(line, "this answer has no text",
                isConditional ? "write \"? CONDITION | TEXT | REPLY\"" : "write \"- TEXT | REPLY\"");
        TRY(answer.text, textIn(setting, parts[0], line));
        if (parts.size() > 1) {
            TRY(answer.reply, textIn(setting, parts[1], line));
        }
        choice.answers.push_back(std::move(answer));
    }
    if (choice.answers.size() < 2)
        return lessonError(block.line, "a choice has two answers at least");
    if (std::none_of(choice.answers.begin(), choice.answers.end(),
            [](const LessonAnswer &each) { return each.right || each.condition; }))
        return lessonError(
            block.line, "no answer of this choice is right", "begin the right one with \"+ \"");
    return choice;
}

Result<LessonNumber> numberIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonNumber number{.line = block.line};
    TRY(const auto fields, fieldsOf(block, {"question", "answer", "tolerance", "right", "wrong"}));
    TRY(const Field question, requireField(block, fields, "question"));
    TRY(const Field answer, requireField(block, fields, "answer"));
    TRY(number.question, textIn(setting, question.value, question.line));
    TRY(number.answer, expressionIn(setting, answer.value, answer.line));
    if (number.answer.unit() == FigureUnit::Word || number.answer.unit() == FigureUnit::Truth)
        return lessonError(answer.line, "the answer is no number", "ask for it in a choice");
    const Field *tolerance = findField(fields, "tolerance");
    TRY(number.tolerance,
        expressionIn(setting, tolerance ? tolerance->value : "1%", tolerance ? tolerance->line : 0));
    number.relative = number.tolerance.unit() == FigureUnit::Share;
    if (!number.relative && number.tolerance.unit() != number.answer.unit()
        && number.tolerance.unit() != FigureUnit::Number)
        return lessonError(tolerance->line, "the tolerance has another unit than the answer",
            "write it in percent, or in the answer's unit");
    if (!number.relative && number.tolerance.unit() == FigureUnit::Number
        && (number.answer.unit() == FigureUnit::Time || number.answer.unit() == FigureUnit::Bytes))
        return lessonError(tolerance->line, "the tolerance lacks a unit", "write it as 10%, 5 ms or 1 GiB");
    for (const auto &[key, text] : {std::pair{"right", &number.right}, std::pair{"wrong", &number.wrong}})
        if (const Field *field = findField(fields, key)) {
            TRY(*text, textIn(setting, field->value, field->line));
        }
    return number;
}

Result<LessonTask> taskIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonTask task{.line = block.line};
    TRY(const auto fields, fieldsOf(block, {"goal"}, "-"));
    TRY(const Field goal, requireField(block, fields, "goal"));
    TRY(task.goal, textIn(setting, goal.value, goal.line));
    for (const Field &field : fields) {
        if (field.key != "-")
            continue;
        const std::vector<std::string> parts = partsOf(field.value, 2, true);
        LessonNeed need{.line = field.line};
        TRY(need.condition, conditionIn(setting, parts[0], field.line));
        if (parts.size() > 1 && !parts[1].empty()) {
            TRY(need.otherwise, textIn(setting, parts[1], field.line));
        }
        task.needs.push_back(std::move(need));
    }
    if (task.needs.empty())
        return lessonError(block.line, "this task asks for nothing", "add a condition behind \"- \"");
    return task;
}

Result<LessonText> hintIn(const LessonSetting &setting, const LessonBlock &block)
{
    std::string text;
    for (const LessonLine &line : wholeLines(block))
        text += (text.empty() ? "" : " ") + line.text;
    if (text.empty())
        return lessonError(block.line, "this hint is empty");
    return textIn(setting, text, block.line);
}

Result<std::vector<LessonDeed>> solutionIn(const LessonSetting &setting, const LessonBlock &block)
{
    TRY(const auto fields, fieldsOf(block, kDeedKeys, {}, kDeedKeys));
    std::vector<LessonDeed> deeds;
    for (const Field &field : fields) {
        TRY(LessonDeed deed, deedOf(setting, field));
        deeds.push_back(std::move(deed));
    }
    if (deeds.empty())
        return lessonError(block.line, "this solution does nothing");
    return deeds;
}

Result<LessonWrong> wrongIn(const LessonSetting &setting, const LessonBlock &block)
{
    LessonWrong wrong{.line = block.line};
    TRY(auto apart, rowsApart(block));
    Words keys{"says", "say", "row", "remove", "replace"};
    keys.insert(keys.end(), kDesignKeys.begin(), kDesignKeys.end());
    TRY(const auto fields, fieldsOf(apart.first, keys, {}, kDeedKeys));
    TRY(const Field says, requireField(block, fields, "says"));
    wrong.says = says.value;
    const auto isDeed = [](const Field &field) {
        return field.key == "say" || field.key == "row" || field.key == "remove" || field.key == "replace";
    };
    if (std::none_of(fields.begin(), fields.end(), isDeed)) {
        LessonDesign design{.rows = std::move(apart.second), .line = block.line};
        for (const Field &field : fields)
            TRY_VOID(readDesignField(setting, field, design));
        wrong.design = std::move(design);
        return wrong;
    }
    for (const Field &field : fields) {
        if (field.key == "says")
            continue;
        if (apart.second || std::find(kDeedKeys.begin(), kDeedKeys.end(), field.key) == kDeedKeys.end())
            return lessonError(field.line, "a wrong plan is rows, or the lines of a solution, not both");
        TRY(LessonDeed deed, deedOf(setting, field));
        wrong.deeds.push_back(std::move(deed));
    }
    return wrong;
}

Result<std::vector<LessonClaim>> claimsIn(const LessonSetting &setting, const LessonBlock &block)
{
    std::vector<LessonClaim> claims;
    for (const LessonLine &line : wholeLines(block)) {
        LessonClaim claim{.text = line.text, .line = line.line};
        TRY(claim.condition, conditionIn(setting, line.text, line.line));
        claims.push_back(std::move(claim));
    }
    if (claims.empty())
        return lessonError(block.line, "this block claims nothing");
    return claims;
}

} // namespace planloom
