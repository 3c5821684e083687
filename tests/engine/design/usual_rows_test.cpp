#include "engine/gallery/usual_rows.h"

#include "engine/design/models/opened_model.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(RecomputeRow, IsARowThatActsOnWhatItSays)
{
    const auto model = openModel({"zoo:gpt?layers=2&hidden=16&heads=2&seq=8&vocab=32&batch=2", {}, {}});
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ(*recomputeRow(**model, "none"), "");
    for (const char *word : {"selective", "full"}) {
        const auto row = recomputeRow(**model, word);
        ASSERT_TRUE(row) << describe(row.error());
        const auto table = parseTable(*row);
        ASSERT_TRUE(table) << *row;
        ASSERT_EQ(table->rows.size(), 1u);
        bool products = false;
        for (const OperatorId op : (*model)->index->select(table->rows[0].selector))
            products = products || (*model)->graph->at(op).kind == OperatorKind::Linear;
        EXPECT_EQ(products, std::string(word) == "full");
    }
    EXPECT_FALSE(recomputeRow(**model, "some"));
}

TEST(UsualRows, OffloadWhatTheirWordSays)
{
    const auto none = offloadRows("none");
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
    const auto both = offloadRows("both");
    ASSERT_TRUE(both);
    EXPECT_EQ(*both, (std::vector<std::string>{"offload all : states", "offload all : activations"}));
    EXPECT_EQ(*offloadRows("activations"), std::vector<std::string>{"offload all : activations"});
    EXPECT_FALSE(offloadRows("weights"));
}

} // namespace
} // namespace planloom
