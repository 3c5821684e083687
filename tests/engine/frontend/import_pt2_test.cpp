// Programs that PyTorch saved (tests/interop/make_pt2_files.py): their losses and gradients are PyTorch's.

#include "engine/base/files.h"
#include "engine/frontend/import_model.h"
#include "engine/frontend/torch/import_pt2.h"
#include "engine/frontend/torch/pt2_archive.h"
#include "engine/frontend/training/autodiff.h"
#include "planloom_paths.h"
#include "tests/engine/frontend/npz_for_tests.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::readNpz;

const std::filesystem::path kPrograms =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests" / "engine" / "frontend" / "pt2";

std::string programBytes(const std::string &name)
{
    auto bytes = readFile(kPrograms / (name + ".pt2"));
    EXPECT_TRUE(bytes) << name;
    return bytes ? *std::move(bytes) : std::string();
}

double numberAt(const TensorData &array, std::size_t index)
{
    if (array.type.dataType == DataType::Int64) {
        std::int64_t whole = 0;
        std::memcpy(&whole, array.bytes.data() + index * sizeof whole, sizeof whole);
        return static_cast<double>(whole);
    }
    if (array.type.dataType == DataType::Bool)
        return array.bytes[index] != std::byte{} ? 1 : 0;
    float value = 0;
    std::memcpy(&value, array.bytes.data() + index * sizeof value, sizeof value);
    return static_cast<double>(value);
}

struct Program {
    const char *name;
    const char *values; ///< The .npz with PyTorch's.
    std::map<std::string, std::int64_t> dimensions{};
    std::size_t gradients = 0;
};

class Pt2Programs : public testing::TestWithParam<Program>
{
};

TEST_P(Pt2Programs, HavePyTorchsLossAndGradients)
{
    const Program &program = GetParam();
    for (const bool fuse : {false, true}) {
        SCOPED_TRACE(fuse ? "fused" : "as exported");
        ImportOptions options;
        options.fuse = fuse;
        options.dimensions = program.dimensions;
        auto graph = importPt2Bytes(programBytes(program.name), options);
        ASSERT_TRUE(graph) << describe(graph.error());
        ASSERT_TRUE(graph->loss.valid());
        const TensorId loss = graph->loss;
        const auto done = appendBackward(*graph);
        ASSERT_TRUE(done) << describe(done.error());
        GraphRunner runner(*graph);
        const auto values = readNpz(kPrograms / (std::string(program.values) + ".npz"));
        for (const TensorId input : graph->inputs) {
            const auto found = values.find("in." + graph->at(input).name);
            ASSERT_NE(found, values.end()) << graph->at(input).name;
            ASSERT_EQ(found->second.type, graph->at(input).type) << graph->at(input).name;
            for (std::int64_t i = 0; i < elementCount(found->second.type.shape); ++i)
                runner.set(input, i, numberAt(found->second, static_cast<std::size_t>(i)));
        }
        ASSERT_TRUE(runner.run());
        const double expected = numberAt(values.at("loss"), 0);
        // The terms of a small loss cancel.
        EXPECT_NEAR(runner.get(loss), expected, 1e-5 * std::max(std::abs(expected), 0.1));
        double largestOfAll = 0; // beside it, a gradient that cancels to nothing is rounding
        for (const auto &[name, array] : values) {
            for (std::size_t k = 0; name.starts_with("grad.") && k < array.bytes.size() / sizeof(float); ++k)
                largestOfAll = std::max(largestOfAll, std::abs(numberAt(array, k)));
        }
        std::size_t compared = 0;
        for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
            const Tensor &tensor = graph->tensors[i];
            if (tensor.role != TensorRole::Gradient || graph->at(tensor.of).role != TensorRole::Weight)
                continue;
            const auto found = values.find("grad." + nameInFiles(graph->at(tensor.of)));
            ASSERT_NE(found, values.end()) << tensor.name;
            const auto own = runner.all(TensorId{static_cast<std::int32_t>(i)});
            double largest = 1e-2 * largestOfAll;
            for (std::size_t k = 0; k < own.size(); ++k)
                largest = std::max(largest, std::abs(numberAt(found->second, k)));
            for (std::size_t k = 0; k < own.size(); ++k)
                ASSERT_NEAR(own[k], numberAt(found->second, k), 1e-4 * largest) << tensor.name << " at " << k;
            ++compared;
        }
        EXPECT_EQ(compared, program.gradients);
    }
}

INSTANTIATE_TEST_SUITE_P(Pt2, Pt2Programs,
    testing::Values(Program{"transformer", "transformer", {{"s52", 3}}, 19},
        Program{"transformer_core", "transformer", {{"s52", 3}}, 19},
        Program{"convolutions", "convolutions", {}, 7}, Program{"writes", "writes", {}, 1},
        Program{"grouped_heads", "grouped_heads", {}, 35}, Program{"patches", "patches", {}, 6},
        Program{"operators_windows", "operators_windows", {}, 6},
        Program{"operators_windows_core", "operators_windows", {}, 6},
        Program{"operators_complex", "operators_complex", {}, 15},
        Program{"operators_complex_core", "operators_complex", {}, 15},
        Program{"operators_fourier", "operators_fourier", {}, 13},
        Program{"operators_fourier_core", "operators_fourier", {}, 13},
        Program{"operators_sampling", "operators_sampling", {}, 10},
        Program{"operators_sampling_core", "operators_sampling", {}, 10},
        Program{"operators_indices", "operators_indices", {}, 28},
        Program{"operators_indices_core", "operators_indices", {}, 28},
        Program{"operators_chosen", "operators_chosen", {}, 4},
        Program{"operators_chosen_core", "operators_chosen", {}, 4},
        Program{"operators_control", "operators_control", {}, 14},
        Program{"operators_control_core", "operators_control", {}, 14}),
    [](const testing::TestParamInfo<Program> &info) { return std::string(info.param.name); });

// Operators with their options, several in a program each (STORED in tests/interop/operator_cases.py).
INSTANTIATE_TEST_SUITE_P(Operators, Pt2Programs,
    testing::Values(Program{"operators_bags", "operators_bags", {}, 15},
        Program{"operators_bags_core", "operators_bags", {}, 15},
        Program{"operators_buffers", "operators_buffers", {}, 9},
        Program{"operators_ctc", "operators_ctc", {}, 6},
        Program{"operators_ctc_core", "operators_ctc", {}, 6},
        Program{"operators_elements", "operators_elements", {}, 22},
        Program{"operators_losses", "operators_losses", {}, 24},
        Program{"operators_norms", "operators_norms", {}, 46},
        Program{"operators_order", "operators_order", {}, 16},
        Program{"operators_pools", "operators_pools", {}, 10},
        Program{"operators_pools_core", "operators_pools", {}, 10},
        Program{"operators_quantized", "operators_quantized", {}, 8},
        Program{"operators_special", "operators_special", {}, 34}),
    [](const testing::TestParamInfo<Program> &info) { return std::string(info.param.name); });

ImportOptions withBatch(std::int64_t size)
{
    ImportOptions options;
    options.dimensions = {{"s52", size}};
    return options;
}

TEST(ImportPt2, ModulesBecomeScopesAndLayers)
{
    const auto graph = importPt2File(kPrograms / "transformer.pt2", withBatch(4));
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->name, "transformer");
    std::set<std::string> names;
    std::int32_t first = -1;
    std::int32_t second = -1;
    for (const Scope &scope : graph->scopes) {
        names.insert(scope.name);
        first = scope.name == "layers.0" ? scope.copyClass : first;
        second = scope.name == "layers.1" ? scope.copyClass : second;
    }
    EXPECT_EQ(names.count("layers.0"), 1U);
    EXPECT_EQ(names.count("layers.1"), 1U);
    EXPECT_GE(first, 0);
    EXPECT_EQ(first, second) << "layers of the same operators are copies";
    EXPECT_EQ(std::count_if(graph->operators.begin(), graph->operators.end(),
                  [](const Operator &op) { return op.kind == OperatorKind::Attention; }),
        2);
}

TEST(ImportPt2, TheSignatureSaysWhatIsTrained)
{
    const auto graph = importPt2File(kPrograms / "transformer.pt2", withBatch(4));
    ASSERT_TRUE(graph) << describe(graph.error());
    std::set<std::string> weights;
    for (const Tensor &tensor : graph->tensors) {
        if (tensor.role == TensorRole::Weight)
            weights.insert(nameInFiles(tensor));
    }
    EXPECT_EQ(weights.size(), 19U);
    EXPECT_EQ(weights.count("table.weight"), 1U) << "shared with the head, called by the module's first name";
    EXPECT_EQ(weights.count("head.weight"), 0U);
    EXPECT_EQ(weights.count("mask"), 0U);

    const auto writes = importPt2File(kPrograms / "writes.pt2");
    ASSERT_TRUE(writes) << describe(writes.error());
    for (const Tensor &tensor : writes->tensors)
        EXPECT_EQ(tensor.role == TensorRole::Weight, tensor.name == "turned") << tensor.name;
    EXPECT_TRUE(std::any_of(writes->notes.begin(), writes->notes.end(),
        [](const std::string &note) { return note.find("want no gradient") != std::string::npos; }));
}

TEST(ImportPt2, WeightsStayInTheFileUntilTheyAreRead)
{
    const auto lazy = importPt2File(kPrograms / "transformer.pt2", withBatch(4));
    const auto whole = importPt2Bytes(programBytes("transformer"), withBatch(4));
    ASSERT_TRUE(lazy) << describe(lazy.error());
    ASSERT_TRUE(whole) << describe(whole.error());
    ASSERT_EQ(lazy->tensors.size(), whole->tensors.size());
    std::size_t weights = 0;
    for (std::size_t i = 0; i < lazy->tensors.size(); ++i) {
        const Tensor &tensor = lazy->tensors[i];
        if (tensor.role != TensorRole::Weight)
            continue;
        ++weights;
        EXPECT_EQ(tensor.data, nullptr) << tensor.name;
        ASSERT_TRUE(tensor.external) << tensor.name;
        EXPECT_TRUE(tensor.external->present);
        const auto loaded = loadTensorData(tensor);
        ASSERT_TRUE(loaded) << describe(loaded.error());
        ASSERT_NE(whole->tensors[i].data, nullptr);
        EXPECT_EQ(loaded->bytes, whole->tensors[i].data->bytes) << tensor.name;
    }
    EXPECT_EQ(weights, 19U);
}

TEST(ImportPt2, WhatIsKeptFindsItsWeightsInTheFile)
{
    const auto path = kPrograms / "transformer.pt2";
    auto source = openByteSource(path);
    ASSERT_TRUE(source);
    const auto kept = withoutWeights(*std::move(source), "transformer.pt2", 1U << 20U);
    ASSERT_TRUE(kept) << describe(kept.error());
    const auto whole = importPt2File(path, withBatch(4));
    const auto graph = importPt2Bytes(*kept, withBatch(4), path);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_TRUE(whole);
    ASSERT_EQ(graph->tensors.size(), whole->tensors.size());
    for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
        if (graph->tensors[i].role != TensorRole::Weight)
            continue;
        const auto own = loadTensorData(graph->tensors[i]);
        const auto expected = loadTensorData(whole->tensors[i]);
        ASSERT_TRUE(own) << describe(own.error());
        ASSERT_TRUE(expected);
        EXPECT_EQ(own->bytes, expected->bytes) << graph->tensors[i].name;
    }
    // Without the file, or where it is another model by now, the graph is there and the values are not.
    for (const auto &other : {kPrograms / "nowhere.pt2", kPrograms / "transformer_core.pt2"}) {
        const auto alone = importPt2Bytes(*kept, withBatch(4), other);
        ASSERT_TRUE(alone) << describe(alone.error());
        EXPECT_TRUE(std::any_of(alone->notes.begin(), alone->notes.end(),
            [](const std::string &note) { return note.find("--random-weights") != std::string::npos; }));
        for (const Tensor &tensor : alone->tensors)
            EXPECT_FALSE(tensor.role == TensorRole::Weight && (tensor.data || tensor.external))
                << tensor.name;
    }
    EXPECT_EQ(keptModelContent(path, 1U << 20U).value_or(std::string()), programBytes("transformer"));
}

TEST(ImportPt2, SizesOfSymbolsAreAskedForAndChecked)
{
    const auto path = kPrograms / "transformer.pt2";
    const auto unknown = importPt2File(path);
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().message.find("'s52' (tokens.0, 2 to 64)"), std::string::npos)
        << unknown.error().message;
    EXPECT_EQ(unknown.error().advice, "give a size to each, as in --dim s52=8");
    const auto open = pt2FileDimensions(path);
    ASSERT_TRUE(open) << describe(open.error());
    ASSERT_EQ(open->size(), 1U);
    EXPECT_EQ(open->front().least, 2);
    EXPECT_EQ(open->front().most, 64);
    EXPECT_EQ(open->front().size, 0);

    const auto outside = importPt2File(path, withBatch(65));
    ASSERT_FALSE(outside);
    EXPECT_NE(outside.error().message.find("2 to 64"), std::string::npos) << outside.error().message;

    ImportOptions other;
    other.dimensions = {{"batch", 4}};
    const auto misnamed = importPt2File(path, other);
    ASSERT_FALSE(misnamed);
    EXPECT_EQ(misnamed.error().advice, "its dimensions are 's52'");

    other.dimensions = {{"tokens.0", 5}};
    const auto byAxis = importPt2File(path, other);
    ASSERT_TRUE(byAxis) << describe(byAxis.error());
    EXPECT_EQ(byAxis->at(byAxis->inputs.front()).type.shape, (Shape{5, 6}));
}

TEST(ImportModel, KnowsItsFormatsByTheirContent)
{
    const auto program = importModelFile(kPrograms / "convolutions.pt2");
    ASSERT_TRUE(program) << describe(program.error());
    const auto bytes = importModelBytes(programBytes("convolutions"), "folder/other.name");
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_EQ(bytes->name, "other");
    const auto missing = importModelFile(kPrograms / "nowhere.pt2");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    const auto arrays = importModelFile(kPrograms / "convolutions.npz");
    ASSERT_FALSE(arrays);
    EXPECT_NE(arrays.error().message.find("NumPy"), std::string::npos);
}

} // namespace
} // namespace planloom
