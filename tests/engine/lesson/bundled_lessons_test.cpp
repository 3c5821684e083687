// The lessons that come with Planloom: each is whole, and true on two clusters.

#include "engine/base/text.h"
#include "engine/lesson/player.h"
#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace planloom {
namespace {

/// The words of a text as the file has them, its values left out.
std::string wordsBetweenValues(const LessonText &text)
{
    std::string words;
    for (const auto &piece : text.pieces)
        words += std::holds_alternative<std::string>(piece) ? std::get<std::string>(piece) : "{}";
    return words;
}

/// All texts of a step that a learner may read.
std::vector<const LessonText *> textsOf(const LessonStep &step)
{
    std::vector<const LessonText *> texts;
    for (const LessonPart &part : step.parts) {
        if (const auto *prose = std::get_if<Prose>(&part)) {
            texts.push_back(&prose->text);
        } else if (const auto *choice = std::get_if<LessonChoice>(&std::get<LessonQuestion>(part))) {
            texts.push_back(&choice->question);
            for (const LessonAnswer &answer : choice->answers)
                texts.insert(texts.end(), {&answer.text, &answer.reply});
        } else {
            const auto &number = std::get<LessonNumber>(std::get<LessonQuestion>(part));
            texts.insert(texts.end(), {&number.question, &number.right, &number.wrong});
        }
    }
    for (const LessonPoint &point : step.points)
        texts.push_back(&point.words);
    if (!step.task)
        return texts;
    texts.push_back(&step.task->goal);
    for (const LessonNeed &need : step.task->needs)
        if (need.otherwise)
            texts.push_back(&*need.otherwise);
    for (const LessonText &hint : step.task->hints)
        texts.push_back(&hint);
    for (const LessonDeed &deed : step.task->solution)
        texts.push_back(&deed.words);
    return texts;
}

/// Terms of the glossary and other words for them, in small letters.
std::set<std::string> glossaryTerms()
{
    std::ifstream file(PLANLOOM_SOURCE_DIR "/resources/glossary.md");
    std::set<std::string> terms;
    for (std::string line; std::getline(file, line);)
        for (const std::string begin : {"## ", "Also: "})
            if (line.starts_with(begin)) {
                std::istringstream words(line.substr(begin.size()));
                for (std::string term; std::getline(words, term, ',');)
                    terms.insert(lowerCase(std::string(trimmed(term))));
            }
    return terms;
}

TEST(BundledLessons, AreTwelveInTheirOrder)
{
    const std::vector<Lesson> &lessons = bundledLessons();
    ASSERT_EQ(lessons.size(), 12U);
    for (std::size_t i = 0; i < lessons.size(); ++i)
        EXPECT_EQ(lessons[i].order, static_cast<std::int32_t>(i) + 1) << lessons[i].name;
}

class BundledLesson : public testing::TestWithParam<std::size_t>
{
protected:
    const Lesson &lesson() const { return bundledLessons().at(GetParam()); }

    static void expectNothingWrong(const Lesson &lesson, const std::string &cluster)
    {
        for (const LessonFinding &finding : checkLesson(lesson, {cluster, {}}))
            EXPECT_FALSE(finding.isWrong)
                << lesson.name << "/lesson.md:" << finding.line << " on "
                << (cluster.empty() ? "its cluster" : cluster) << ": " << finding.sentence;
    }
};

TEST_P(BundledLesson, HasAllItsParts)
{
    EXPECT_TRUE(lesson().problems.empty()) << describe(lesson().problems.front());
    EXPECT_GE(lesson().minutes, 5);
    EXPECT_LE(lesson().minutes, 10);
    EXPECT_FALSE(lesson().title.empty());
    EXPECT_FALSE(lesson().idea.empty());
    EXPECT_GE(lesson().steps.size(), 5U);
    EXPECT_LE(lesson().steps.size(), 10U); // the start is one
    int questions = 0;
    int claims = 0;
    bool isShown = false;
    bool isPointedAt = false;
    std::set<std::string> refusals;
    for (const LessonStep &step : lesson().steps) {
        claims += static_cast<int>(step.claims.size());
        isShown = isShown || step.show;
        isPointedAt = isPointedAt || !step.points.empty();
        for (const LessonPart &part : step.parts)
            questions += std::holds_alternative<LessonQuestion>(part) ? 1 : 0;
        if (!step.task)
            continue;
        EXPECT_FALSE(step.task->solution.empty()) << step.title;
        EXPECT_EQ(step.task->solution.front().kind, DeedKind::Say) << step.title;
        EXPECT_GE(step.task->hints.size(), 2U) << step.title;
        for (const LessonWrong &wrong : step.task->wrong)
            refusals.insert(wrong.says);
    }
    EXPECT_GE(questions, 1);
    EXPECT_GE(claims, 1);
    EXPECT_GE(refusals.size(), 3U);
    EXPECT_TRUE(isShown);
    EXPECT_TRUE(isPointedAt);
}

TEST_P(BundledLesson, HasNoMeasuredNumberInItsText)
{
    const std::regex measured(R"([0-9]\s?(%|[nuµm]?s\b|[KMGT]i?B\b|bytes|percent|times\b|seconds))");
    const std::regex link(R"(\]\(glossary:([^)]*)\))");
    const std::set<std::string> terms = glossaryTerms();
    ASSERT_TRUE(terms.contains("bubble"));
    for (const LessonStep &step : lesson().steps)
        for (const LessonText *text : textsOf(step)) {
            const std::string words = wordsBetweenValues(*text);
            EXPECT_FALSE(std::regex_search(words, measured)) << text->line << ": " << words;
            for (std::sregex_iterator each(words.begin(), words.end(), link), end; each != end; ++each)
                EXPECT_TRUE(terms.contains(lowerCase((*each)[1].str()))) << text->line << ": " << (*each)[1];
        }
}

TEST_P(BundledLesson, HoldsOnItsCluster)
{
    expectNothingWrong(lesson(), {});
}

TEST_P(BundledLesson, HoldsOnAnotherCluster)
{
    if (lesson().designs.front().cluster == "cpu")
        GTEST_SKIP() << "it is about this machine's own processors";
    expectNothingWrong(lesson(), "dgx-h100");
}

INSTANTIATE_TEST_SUITE_P(All, BundledLesson, testing::Range<std::size_t>(0, 12),
    [](const auto &parameter) { return "Lesson" + std::to_string(parameter.param + 1); });

} // namespace
} // namespace planloom
