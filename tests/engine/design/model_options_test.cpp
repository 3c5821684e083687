#include "engine/design/models/model_options.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using Values = std::map<std::string, std::string>;

ModelOptions unusual()
{
    ModelOptions options;
    options.lossOutput = "total";
    options.dimensions = {{"batch", 8}, {"image.0", 3}};
    options.storedAs = {{"h.0.w", StoredAs::Constant}, {"val_1", StoredAs::Parameter}};
    options.inference = true;
    options.optimizer = Optimizer::Sgd;
    options.learningRate = 0.1;
    options.weightDecay = 1e-30;
    options.clipNorm = 0.1;
    options.capacities["*"] = Capacity{.factor = 1.25};
    options.capacities["h.0.choose"] = Capacity{.kind = Capacity::Kind::Rows, .rows = 128};
    options.unroll = {"rnn"};
    return options;
}

TEST(ModelOptions, GoToASessionAndBack)
{
    EXPECT_EQ(valuesOf(unusual()),
        (Values{{"loss", "total"}, {"dim.batch", "8"}, {"dim.image.0", "3"}, {"stored.h.0.w", "constant"},
            {"stored.val_1", "parameter"}, {"inference", "1"}, {"optimizer", "sgd"}, {"learning-rate", "0.1"},
            {"weight-decay", "1e-30"}, {"clip-norm", "0.1"}, {"capacity", "1.25x"},
            {"capacity.h.0.choose", "128"}, {"unroll.rnn", "1"}}));
    EXPECT_TRUE(valuesOf({}).empty());
    for (const ModelOptions &options : {ModelOptions{}, unusual()}) {
        const auto back = modelOptionsOf(valuesOf(options));
        ASSERT_TRUE(back) << describe(back.error());
        EXPECT_EQ(*back, options);
    }
    EXPECT_EQ(valuesOf({}, WrittenOptions::All),
        (Values{{"loss", ""}, {"inference", "0"}, {"optimizer", "adamw"}, {"learning-rate", "0.001"},
            {"weight-decay", "0"}, {"clip-norm", "0"}, {"capacity", "1x"}, {"unroll", "0"}}));
    EXPECT_EQ(*modelOptionsOf(valuesOf({}, WrittenOptions::All)), ModelOptions{});
    for (const double rate : {1.0 / 3, 5e-324, 0.1 + 0.2}) {
        ModelOptions options;
        options.learningRate = rate;
        EXPECT_EQ(modelOptionsOf(valuesOf(options))->learningRate, rate);
    }
}

TEST(ModelOptions, ReadWhatSessionsHoldToday)
{
    // All that earlier versions wrote.
    const auto options = modelOptionsOf({{"loss", "loss"}, {"dim.batch", "4"}});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->lossOutput, "loss");
    EXPECT_EQ(options->dimensions, (std::map<std::string, std::int64_t>{{"batch", 4}}));
    EXPECT_EQ(options->optimizer, Optimizer::AdamW);
}

TEST(ModelOptions, SayWhatIsWrong)
{
    const std::pair<Values, const char *> cases[]{
        {{{"dim.batch", "many"}}, "--dim"},
        {{{"dim.batch", "0"}}, "--dim"},
        {{{"capacity", "much"}}, "--capacity"},
        {{{"unroll", "yes"}}, "--unroll"},
        {{{"capacity.h.0.choose", "0"}}, "--capacity"},
        {{{"dim.batch", "4x"}}, "--dim"},
        {{{"dim.", "4"}}, "--dim."},
        {{{"stored.w", "weight"}}, "--stored"},
        {{{"stored.", "parameter"}}, "--stored."},
        {{{"inference", "yes"}}, "--inference"},
        {{{"optimizer", "adam"}}, "--optimizer"},
        {{{"learning-rate", "-1"}}, "--learning-rate"},
        {{{"learning-rate", "nan"}}, "--learning-rate"},
        {{{"weight-decay", ""}}, "--weight-decay"},
        {{{"clip-norm", "-1"}}, "--clip-norm"},
        {{{"precision", "half"}}, "--precision"},
    };
    for (const auto &[values, where] : cases) {
        const auto options = modelOptionsOf(values);
        ASSERT_FALSE(options) << where;
        EXPECT_EQ(options.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(options.error().where, where);
        EXPECT_FALSE(options.error().message.empty());
    }
}

TEST(ModelOptions, LeaveTensorsToTheImporterWhereTheySaySo)
{
    const auto options = modelOptionsOf({{"stored.w", "by-rule"}, {"stored.v", "buffer"}});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->storedAs, (std::map<std::string, StoredAs>{{"v", StoredAs::Buffer}}));
    EXPECT_EQ(describe(*options), "v as buffer");
}

TEST(ModelOptions, DescribeWhatIsUnusual)
{
    EXPECT_EQ(describe(ModelOptions{}), "");
    ModelOptions options;
    options.optimizer = Optimizer::Sgd;
    options.learningRate = 0.01;
    options.dimensions["batch"] = 8;
    EXPECT_EQ(describe(options), "batch = 8, learning rate 0.01, sgd");
}

} // namespace
} // namespace planloom
