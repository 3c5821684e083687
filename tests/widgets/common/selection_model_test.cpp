#include "widgets/common/selection_model.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(SelectionModel, ReportsChangesOnce)
{
    SelectionModel model;
    int changes = 0;
    QObject::connect(&model, &SelectionModel::selectionChanged, [&changes] { ++changes; });
    model.select({OperatorId{3}, OperatorId{1}, OperatorId{3}, OperatorId{}});
    EXPECT_EQ(model.selected(), (std::vector<OperatorId>{OperatorId{1}, OperatorId{3}}));
    EXPECT_EQ(changes, 1);
    model.select({OperatorId{1}, OperatorId{3}});
    EXPECT_EQ(changes, 1);
}

TEST(SelectionModel, ToggleAddsUnlessAllAreIn)
{
    SelectionModel model;
    model.toggle({OperatorId{1}, OperatorId{2}});
    model.toggle({OperatorId{2}, OperatorId{5}});
    EXPECT_EQ(model.selected(), (std::vector<OperatorId>{OperatorId{1}, OperatorId{2}, OperatorId{5}}));
    model.toggle({OperatorId{2}, OperatorId{5}});
    EXPECT_EQ(model.selected(), (std::vector<OperatorId>{OperatorId{1}}));
    EXPECT_TRUE(model.contains(OperatorId{1}));
    EXPECT_FALSE(model.contains(OperatorId{2}));
}

} // namespace
} // namespace planloom
