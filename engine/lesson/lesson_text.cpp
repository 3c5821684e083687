// Texts with values, the files beside them, and lessons as they are found.

#include "engine/base/files.h"
#include "engine/base/nearest_name.h"
#include "engine/lesson/embedded_lessons.h"
#include "engine/lesson/lesson_blocks.h"

#include <algorithm>

namespace planloom {

namespace {

/// Where the brace that opens at `open` is closed; braces within it (set{a}) and quotes are passed by.
std::size_t closingBrace(const std::string &text, std::size_t open)
{
    int depth = 0;
    bool isQuoted = false;
    for (std::size_t at = open; at < text.size(); ++at) {
        if (text[at] == '"')
            isQuoted = !isQuoted;
        else if (!isQuoted && text[at] == '{')
            ++depth;
        else if (!isQuoted && text[at] == '}' && --depth == 0)
            return at;
    }
    return std::string::npos;
}

} // namespace

Error lessonError(std::int32_t line, std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
        std::string(kLessonFile) + ":" + std::to_string(line)};
}

Error unknownWord(std::int32_t line, std::string_view what, std::string_view word,
    const std::vector<std::string_view> &known)
{
    std::string advice = didYouMean(word, known);
    if (advice.empty())
        for (const std::string_view each : known)
            advice += (advice.empty() ? "there are " : ", ") + std::string(each);
    return lessonError(line,
        "expected " + std::string(what) + ", found \"" + std::string(word.substr(0, 60)) + "\"",
        std::move(advice));
}

Result<LessonText> lessonTextFrom(const std::string &text, std::int32_t line)
{
    LessonText result{.line = line};
    std::string words;
    const auto flush = [&] {
        if (!words.empty())
            result.pieces.emplace_back(std::exchange(words, {}));
    };
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '}')) {
            words += text[++at];
            continue;
        }
        if (text[at] != '{') {
            words += text[at];
            continue;
        }
        const std::size_t end = closingBrace(text, at);
        const std::string column = std::to_string(at + 1);
        if (end == std::string::npos)
            return Error{ErrorCode::InvalidInput, "a brace opens a value and is not closed",
                "write \\{ for a brace that is meant as such", column};
        const std::string inner = text.substr(at + 1, end - at - 1);
        auto expression = expressionFromText(inner);
        if (!expression)
            return Error{expression.error().code, "in {" + inner + "}: " + expression.error().message,
                expression.error().advice, column};
        flush();
        result.pieces.emplace_back(*std::move(expression));
        at = end;
    }
    flush();
    return result;
}

Result<std::filesystem::path> fileOf(const std::filesystem::path &folder, const std::string &name)
{
    namespace fs = std::filesystem;
    const fs::path file(name);
    const auto outside = [&] {
        return Error{ErrorCode::InvalidInput, "\"" + name + "\" is not inside the lesson's folder",
            "copy it there, and name it without a way out of the folder", {}};
    };
    if (file.empty() || file.is_absolute() || name.find('\0') != std::string::npos
        || std::any_of(file.begin(), file.end(), [](const fs::path &part) { return part == ".."; }))
        return outside();
    if (folder.empty())
        return file;
    std::error_code failure;
    const fs::path root = fs::canonical(folder, failure);
    const fs::path whole = failure ? fs::path() : fs::canonical(root / file, failure);
    if (failure)
        return Error{ErrorCode::NotFound, "there is no file \"" + name + "\" in the lesson's folder", {}, {}};
    const auto [end, inner] = std::mismatch(root.begin(), root.end(), whole.begin(), whole.end());
    if (end != root.end())
        return outside(); // by a link
    return whole;
}

LessonDesign filledUp(LessonDesign design, const LessonDesign &from)
{
    for (const auto member : {&LessonDesign::model, &LessonDesign::cluster, &LessonDesign::framework})
        if ((design.*member).empty())
            design.*member = from.*member;
    if (design.devices == 0)
        design.devices = from.devices;
    if (design.gallery.empty() && !design.rows) {
        design.gallery = from.gallery;
        design.rows = from.rows;
        design.search = design.search ? design.search : from.search;
    }
    return design;
}

Result<Lesson> readLesson(const std::filesystem::path &folder)
{
    TRY(const std::string text,
        readFile(folder / kLessonFile, {.what = "lesson", .mostBytes = kMostLessonBytes}));
    std::filesystem::path named = folder;
    if (named.filename().empty()) // "lessons/mine/"
        named = named.parent_path();
    std::error_code failure;
    if (const auto whole = std::filesystem::canonical(named, failure); !failure)
        named = whole; // "." has a name, too
    return lessonFromText(named.filename().string(), text, named);
}

const std::vector<Lesson> &bundledLessons()
{
    static const std::vector<Lesson> kLessons = [] {
        std::vector<Lesson> lessons;
        for (const EmbeddedLesson &each : embeddedLessons())
            lessons.push_back(lessonFromText(std::string(each.name), std::string(each.text)));
        std::stable_sort(lessons.begin(), lessons.end(),
            [](const Lesson &a, const Lesson &b) { return a.order < b.order; });
        return lessons;
    }();
    return kLessons;
}

} // namespace planloom
