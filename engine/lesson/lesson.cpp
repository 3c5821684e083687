#include "engine/lesson/lesson.h"

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/lesson/lesson_blocks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostProblems = 100;

/// How many backticks open a fence, and what stands behind them.
struct Fence {
    std::size_t ticks = 0;
    std::string_view words{};
};

std::optional<Fence> fenceOf(std::string_view line)
{
    const std::size_t spaces = line.find_first_not_of(' ');
    if (spaces == std::string_view::npos || spaces > 3)
        return std::nullopt;
    line.remove_prefix(spaces);
    std::size_t ticks = 0;
    while (ticks < line.size() && line[ticks] == '`')
        ++ticks;
    const std::string_view words = trimmed(line.substr(ticks));
    if (ticks < 3 || words.find('`') != std::string_view::npos) // the latter is code within a line
        return std::nullopt;
    return Fence{ticks, words};
}

std::vector<LessonLine> linesIn(const std::string &text)
{
    std::vector<LessonLine> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        if (line.ends_with('\r'))
            line.pop_back();
        lines.push_back({std::move(line), static_cast<std::int32_t>(lines.size()) + 1});
        at = end + 1;
    }
    return lines;
}

/// "- item", "* item", "1. item": what stands behind the mark; nothing for other lines.
std::optional<std::string_view> itemOf(std::string_view line)
{
    line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("- ") || line.starts_with("* "))
        return trimmed(line.substr(2));
    std::size_t digits = 0;
    while (digits < line.size() && digits < 3 && isDigit(line[digits]))
        ++digits;
    if (digits > 0 && line.substr(digits).starts_with(". "))
        return trimmed(line.substr(digits + 2));
    return std::nullopt;
}

class LessonReader
{
public:
    LessonReader(const std::string &name, const std::filesystem::path &folder)
        : m_setting{folder, {"goal", "start"}}
    {
        m_lesson.name = name;
        m_lesson.title = name;
        m_lesson.folder = folder;
        m_lesson.steps.push_back({.line = 1});
    }

    Lesson read(const std::string &text)
    {
        if (text.size() > kMostLessonBytes) {
            report(lessonError(1, "the lesson is longer than 1 MiB", "cut it into several"));
            return std::move(m_lesson);
        }
        m_lines = linesIn(text);
        for (LessonLine &each : m_lines)
            clean(each);
        findPlans();
        for (m_at = 0; m_at < m_lines.size();)
            readLine();
        endProse();
        if (!m_hasTitle)
            report(lessonError(1, "the lesson has no title", "begin it with a line \"# Title\""));
        return std::move(m_lesson);
    }

private:
    void report(Error error)
    {
        if (m_lesson.problems.size() < kMostProblems)
            m_lesson.problems.push_back(std::move(error));
    }

    LessonStep &step() { return m_lesson.steps.back(); }

    void clean(LessonLine &each)
    {
        std::string cleaned = withCharactersAlone(each.text);
        if (cleaned == each.text)
            return;
        report(lessonError(each.line, "this line has bytes that are no text", "save the file as UTF-8"));
        each.text = std::move(cleaned);
    }

    /// Values may name plans that stand behind them.
    void findPlans()
    {
        for (const LessonLine &each : m_lines)
            if (const auto fence = fenceOf(each.text); fence && fence->words.starts_with("plan "))
                m_setting.plans.emplace(trimmed(fence->words.substr(5)));
    }

    void readLine()
    {
        const LessonLine &line = m_lines[m_at];
        if (const auto fence = fenceOf(line.text)) {
            endProse();
            readFence(*fence);
            return;
        }
        ++m_at;
        const std::string_view text = trimmed(line.text);
        if (text.empty()) {
            endProse();
        } else if (line.text.starts_with("# ") || line.text.starts_with("## ")) {
            endProse();
            readHeading(line);
        } else if (text.starts_with("![")) {
            endProse();
            readPicture(line);
        } else {
            addProse(line);
        }
    }

    void readHeading(const LessonLine &line)
    {
        const bool isTitle = line.text.starts_with("# ");
        const std::string words(trimmed(std::string_view(line.text).substr(isTitle ? 2 : 3)));
        if (!isTitle) {
            m_lesson.steps.push_back({.title = words, .open = step().open, .line = line.line});
        } else if (m_hasTitle) {
            report(lessonError(line.line, "the lesson has a second title", "begin steps with \"## \""));
        } else {
            m_hasTitle = true;
            m_lesson.title = words;
        }
    }

    void addProse(const LessonLine &line)
    {
        const auto item = itemOf(line.text);
        if (item)
            endProse();
        if (line.text.starts_with("###"))
            report(lessonError(line.line, "headings have one or two levels", "write it **strong**"));
        if (m_prose.empty()) {
            m_proseLine = line.line;
            m_isItem = item.has_value();
        } else {
            m_prose += " ";
        }
        m_prose += item.value_or(trimmed(line.text));
    }

    /// A text whose values cannot be read stands as it is written.
    LessonText proseText(const std::string &text, std::int32_t line)
    {
        auto read = textIn(m_setting, text, line);
        if (read)
            return *std::move(read);
        report(std::move(read).error());
        return {.pieces = {text}, .line = line};
    }

    void endProse()
    {
        if (m_prose.empty())
            return;
        const ProseKind kind = m_isItem ? ProseKind::Item : ProseKind::Paragraph;
        step().parts.emplace_back(
            Prose{.kind = kind, .text = proseText(std::exchange(m_prose, {}), m_proseLine)});
    }

    /// ![what is on it](picture.png)
    void readPicture(const LessonLine &line)
    {
        const std::string text(trimmed(line.text));
        const std::size_t middle = text.find("](");
        if (middle == std::string::npos || !text.ends_with(')')) {
            report(lessonError(line.line, "expected a picture in a line of its own",
                "write it as ![what is on it](picture.png)"));
            return;
        }
        const std::string file = text.substr(middle + 2, text.size() - middle - 3);
        if (const auto found = fileOf(m_setting.folder, file); !found) {
            report(lessonError(line.line, found.error().message, found.error().advice));
            return;
        }
        step().parts.emplace_back(Prose{.kind = ProseKind::Picture,
            .text = proseText(text.substr(2, middle - 2), line.line),
            .picture = file});
    }

    /// Reads the block whose fence stands at `m_at`, and goes on behind it.
    void readFence(const Fence &fence)
    {
        LessonBlock block{.line = m_lines[m_at].line};
        const std::size_t space = std::min(fence.words.find(' '), fence.words.size());
        block.name = fence.words.substr(0, space);
        block.argument = trimmed(fence.words.substr(space));
        const std::size_t ticks = fence.ticks;
        const std::size_t first = ++m_at;
        bool isClosed = false;
        for (; m_at < m_lines.size(); ++m_at) {
            const auto next = fenceOf(m_lines[m_at].text);
            if (!next || next->ticks < ticks)
                continue;
            isClosed = next->words.empty();
            break;
        }
        if (!isClosed) { // what follows is read as if it were
            const auto from = m_lines.begin() + static_cast<std::ptrdiff_t>(first);
            const auto to = m_lines.begin() + static_cast<std::ptrdiff_t>(m_at);
            m_at = static_cast<std::size_t>(std::find_if(from, to, [](const LessonLine &each) {
                return each.text.starts_with("## ");
            }) - m_lines.begin());
            report(lessonError(block.line, "the block \"" + block.name + "\" is not closed",
                "close it with a line of " + std::to_string(ticks) + " backticks"));
            return;
        }
        block.lines.assign(m_lines.begin() + static_cast<std::ptrdiff_t>(first),
            m_lines.begin() + static_cast<std::ptrdiff_t>(m_at));
        ++m_at;
        if (auto done = readBlock(block); !done)
            report(std::move(done).error());
    }

    Result<void> readBlock(const LessonBlock &block)
    {
        using Reader = Result<void> (LessonReader::*)(const LessonBlock &);
        static constexpr std::array<std::pair<std::string_view, Reader>, 11> kReaders{
            {{"lesson", &LessonReader::addAbout}, {"open", &LessonReader::addOpen},
                {"plan", &LessonReader::addPlan}, {"show", &LessonReader::addShow},
                {"point", &LessonReader::addPoint}, {"choice", &LessonReader::addChoice},
                {"number", &LessonReader::addNumber}, {"task", &LessonReader::addTask},
                {"hint", &LessonReader::addToTask}, {"solution", &LessonReader::addToTask},
                {"wrong", &LessonReader::addToTask}}};
        if (block.name != "plan" && !block.argument.empty())
            return lessonError(block.line,
                "expected nothing behind \"" + block.name + "\", found \"" + block.argument + "\"");
        if (block.name == "claim")
            return addClaims(block);
        std::vector<std::string_view> names{"claim"};
        for (const auto &[name, reader] : kReaders) {
            if (block.name == name)
                return (this->*reader)(block);
            names.push_back(name);
        }
        return unknownWord(block.line, "the name of a block", block.name, names);
    }

    Result<void> twice(const LessonBlock &block, const char *where) const
    {
        return lessonError(block.line, "there is a second block \"" + block.name + "\" in this " + where,
            std::string("leave one of them out")
                + (block.name == "lesson" ? "" : ", or begin a step with \"## \""));
    }

    Result<void> addAbout(const LessonBlock &block)
    {
        if (m_lesson.steps.size() > 1)
            return lessonError(block.line, "the block \"lesson\" stands behind a heading",
                "move it to the start of the lesson");
        if (std::exchange(m_hasAbout, true))
            return twice(block, "lesson");
        return readAbout(block, m_lesson);
    }

    Result<void> addOpen(const LessonBlock &block)
    {
        if (step().opens)
            return twice(block, "step");
        TRY(LessonDesign design, designIn(m_setting, block));
        if (!m_lesson.designs.empty())
            design = filledUp(std::move(design), m_lesson.designs.back());
        for (const auto &[word, member] :
            {std::pair{"model", &LessonDesign::model}, std::pair{"cluster", &LessonDesign::cluster}})
            if ((design.*member).empty())
                return lessonError(block.line, std::string("the first block \"open\" lacks \"") + word + "\"",
                    std::string("add a line \"") + word + ": ...\"");
        m_lesson.designs.push_back(std::move(design));
        step().open = static_cast<std::int32_t>(m_lesson.designs.size()) - 1;
        step().opens = true;
        return {};
    }

    Result<void> addPlan(const LessonBlock &block)
    {
        if (m_lesson.designs.empty())
            return lessonError(block.line, "a plan needs an \"open\" before it", "move it behind one");
        const auto isLetter = [](char c) {
            return isDigit(c) || c == '-' || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z');
        };
        const std::string &name = block.argument;
        if (name.empty() || !std::all_of(name.begin(), name.end(), isLetter) || name == "start"
            || name == "goal")
            return lessonError(block.line,
                "expected a plan's name of letters, digits and -, found \"" + name + "\"",
                "\"start\" and \"goal\" have meanings of their own");
        for (const LessonPlan &plan : m_lesson.plans)
            if (plan.name == name)
                return lessonError(
                    block.line, "there is a second plan \"" + name + "\"", "give it another name");
        TRY(LessonDesign design, designIn(m_setting, block));
        m_lesson.plans.push_back(
            {name, std::move(design), static_cast<std::int32_t>(m_lesson.designs.size()) - 1});
        return {};
    }

    Result<void> addShow(const LessonBlock &block)
    {
        if (step().show)
            return twice(block, "step");
        TRY(step().show, showIn(block));
        return {};
    }

    Result<void> addPoint(const LessonBlock &block)
    {
        TRY(LessonPoint point, pointIn(m_setting, block));
        step().points.push_back(std::move(point));
        return {};
    }

    Result<void> addChoice(const LessonBlock &block)
    {
        TRY(LessonChoice choice, choiceIn(m_setting, block));
        step().parts.emplace_back(LessonQuestion(std::move(choice)));
        return {};
    }

    Result<void> addNumber(const LessonBlock &block)
    {
        TRY(LessonNumber number, numberIn(m_setting, block));
        step().parts.emplace_back(LessonQuestion(std::move(number)));
        return {};
    }

    Result<void> addTask(const LessonBlock &block)
    {
        if (step().task)
            return twice(block, "step");
        if (m_lesson.designs.empty())
            return lessonError(block.line, "a task needs an \"open\" before it", "add one to this step");
        TRY(step().task, taskIn(m_setting, block));
        return {};
    }

    Result<void> addToTask(const LessonBlock &block)
    {
        if (!step().task)
            return lessonError(block.line, "the block \"" + block.name + "\" stands behind no task",
                "move it behind the task of its step");
        LessonTask &task = *step().task;
        if (block.name == "hint") {
            TRY(LessonText hint, hintIn(m_setting, block));
            task.hints.push_back(std::move(hint));
        } else if (block.name == "wrong") {
            TRY(LessonWrong wrong, wrongIn(m_setting, block));
            task.wrong.push_back(std::move(wrong));
        } else if (!task.solution.empty()) {
            return twice(block, "step");
        } else {
            TRY(task.solution, solutionIn(m_setting, block));
        }
        return {};
    }

    Result<void> addClaims(const LessonBlock &block)
    {
        TRY(std::vector<LessonClaim> claims, claimsIn(m_setting, block));
        for (LessonClaim &claim : claims)
            step().claims.push_back(std::move(claim));
        return {};
    }

    LessonSetting m_setting;
    Lesson m_lesson{};
    std::vector<LessonLine> m_lines{};
    std::size_t m_at = 0;
    std::string m_prose{}; ///< Of the paragraph or item under way.
    std::int32_t m_proseLine = 0;
    bool m_isItem = false;
    bool m_hasTitle = false;
    bool m_hasAbout = false;
};

} // namespace

Lesson lessonFromText(const std::string &name, const std::string &text, const std::filesystem::path &folder)
{
    return LessonReader(name, folder).read(text);
}

} // namespace planloom
