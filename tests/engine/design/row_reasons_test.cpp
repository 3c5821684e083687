#include "engine/design/explain/row_reasons.h"

#include "engine/table/selector.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

class RowReasons : public testing::Test
{
protected:
    static PlanAnswerSnapshot planned(const std::string &rows)
    {
        const auto model =
            openModel({.source = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=8"});
        EXPECT_TRUE(model) << describe(model.error());
        PlanRequest request;
        request.model = *model;
        request.table = TableDocument(rows);
        request.target.cluster = "dgx-h100:4";
        request.upTo = PlanGrade::Planned;
        auto answer = answerOf(request);
        EXPECT_TRUE(answer && !(*answer)->firstError())
            << ((*answer)->firstError() ? (*answer)->firstError()->message : "");
        return *answer;
    }
    static OperatorId one(const PlanAnswer &answer, const char *selector)
    {
        return answer.model->index->select(*parseSelector(selector)).front();
    }
    /// All names of a selection, as the gallery writes them.
    static std::string namesOf(const PlanAnswer &answer, const char *selector)
    {
        std::string names;
        for (const OperatorId op : answer.model->index->select(*parseSelector(selector)))
            if (answer.model->graph->at(op).direction == Direction::Forward)
                names += (names.empty() ? "set{" : ", ") + answer.model->graph->at(op).name;
        return names + "}";
    }
};

TEST_F(RowReasons, SayInALineWhereItRunsFirst)
{
    const auto any = planned("mesh pp=2 tp=2\n");
    const std::string first =
        namesOf(*any, "layer:0-1 | name:wte | name:wpe | name:embeddings | name:position_ids");
    const auto answer = planned("# mine\nmesh pp=2 tp=2\nsplit kind:Linear : n over tp\nstage " + first
        + " : 0\nplace " + first
        + " : pp=0\nstage layer:2-3 | in:loss | set{ln_f, lm_head} : 1\nplace layer:2-3 | in:loss | "
          "set{ln_f, "
          "lm_head} : pp=1\n");
    const auto reasons = rowReasons(*answer, one(*answer, "layer:0 & kind:Linear"));
    ASSERT_EQ(reasons.size(), 3u);
    EXPECT_EQ(reasons[0].line, 4);
    EXPECT_EQ(reasons[0].words.find("place "), 0u) << reasons[0].words;
    EXPECT_NE(reasons[0].words.find("stage 0"), std::string::npos) << reasons[0].words;
    EXPECT_NE(reasons[0].words.find(" operators"), std::string::npos) << reasons[0].words;
    EXPECT_NE(reasons[0].words.find(" on pp=0"), std::string::npos) << reasons[0].words;
    EXPECT_TRUE(reasons[0].isShortened);
    EXPECT_EQ(reasons[1].words, "split kind:Linear : n over tp"); // short enough as it reads
    EXPECT_FALSE(reasons[1].isShortened);
    EXPECT_EQ(reasons[1].line, 2);
    EXPECT_EQ(reasons[2].words.find("stage 0: "), 0u) << reasons[2].words;
    for (const RowReason &reason : reasons)
        EXPECT_LE(reason.words.size(), 100u) << reason.words;
}

TEST_F(RowReasons, AreNoneWhereNoRowSpeaks)
{
    const auto answer = planned("mesh tp=4\nsplit layer:0 & kind:Linear : n over tp\n");
    EXPECT_TRUE(rowReasons(*answer, one(*answer, "layer:2 & kind:LayerNorm")).empty());
}

} // namespace
} // namespace planloom
