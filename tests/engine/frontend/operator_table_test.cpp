// The table of what Planloom does with every operator of ONNX's sets 7 to 25, resources/operators.txt, is
// what the code does with a small node of each.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/onnx/onnx_attributes.h"
#include "engine/frontend/training/autodiff.h"
#include "engine/kernels/kernel.h"

#include "planloom_paths.h"

#include "tests/engine/frontend/example_file.h"
#include "tests/engine/frontend/operator_examples.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace planloom {
namespace {

using testing_support::exampleFile;
using testing_support::GraphRunner;
using testing_support::kOperatorExamples;
using testing_support::OperatorExample;

struct Support {
    bool imported = false;
    bool annotated = false;
    bool differentiated = false;
    bool run = false;
};

bool runs(const Graph &graph)
{
    const bool kernels = std::all_of(
        graph.operators.begin(), graph.operators.end(), [](const Operator &op) { return hasKernel(op); });
    return kernels && GraphRunner(graph, 1, 2).run();
}

/// Whether the gradient of the first floating input can be computed.
bool isDifferentiated(const OperatorExample &example, const ImportOptions &options)
{
    auto graph = importOnnxBytes(exampleFile(example, true).bytes(), {}, options);
    if (!graph || !graph->loss)
        return false;
    const auto x = std::find_if(graph->inputs.begin(), graph->inputs.end(),
        [&](TensorId id) { return isFloating(graph->at(id).type.dataType); });
    if (x != graph->inputs.end()) {
        graph->at(*x).role = TensorRole::Weight;
        graph->inputs.erase(x);
    }
    return appendBackward(*graph) && runs(*graph);
}

Support supportOf(const OperatorExample &example)
{
    ImportOptions options;
    options.fuse = false;
    Support support;
    const auto graph = importOnnxBytes(exampleFile(example, false).bytes(), {}, options);
    if (!graph || std::any_of(graph->operators.begin(), graph->operators.end(), [](const Operator &op) {
            return op.kind == OperatorKind::Unknown;
        }))
        return support;
    support.imported = true;
    support.annotated = std::all_of(graph->operators.begin(), graph->operators.end(),
        [](const Operator &op) { return op.annotationProblem.empty(); });
    support.run = runs(*graph);
    support.differentiated = isDifferentiated(example, options);
    return support;
}

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

/// "    mode                    constant reflect edge wrap"
std::string lineOf(const OnnxAttributeRule &rule)
{
    std::string line = "    " + rule.name;
    line.resize(std::max<std::size_t>(28, line.size() + 1), ' ');
    line += rule.isRefused ? "refused" : rule.taken.empty() ? "any" : joined(rule.taken);
    if (!rule.refused.empty())
        line += "; refused: " + joined(rule.refused);
    if (rule.since > 0)
        line += "; from operator set " + std::to_string(rule.since);
    if (rule.until < INT64_MAX)
        line += "; up to operator set " + std::to_string(rule.until);
    return line;
}

std::string tableText()
{
    std::string text =
        "# What Planloom does with the operators of ONNX's operator sets 7 to 25.\n"
        "# Made by the test OperatorTable from the code; tests/interop/onnx_node_tests.py "
        "compares it with ONNX's own tests.\n"
        "# imported: becomes operators of the graph; annotated: these can be split;\n"
        "# differentiated: trains; run: on CPU devices.\n"
        "# Below an operator stand its attributes and the values that are carried out as ONNX "
        "defines them. Other values and\n"
        "# other attributes are refused by name. tests/interop/attribute_tests.py compares all "
        "combinations with ONNX Runtime.\n";
    for (const OperatorExample &example : kOperatorExamples) {
        const Support support = supportOf(example);
        std::string line = example.type;
        line.resize(std::max<std::size_t>(28, line.size() + 1), ' ');
        line += support.imported ? "imported " : "- ";
        line += support.annotated ? "annotated " : "- ";
        line += support.differentiated ? "differentiated " : "- ";
        line += support.run ? "run" : "-";
        text += line + "\n";
        if (!support.imported)
            continue;
        for (const OnnxAttributeRule &rule : onnxAttributeRules(example.type))
            text += lineOf(rule) + "\n";
    }
    return text;
}

TEST(OperatorTable, NamesEveryOperatorOnceInOrder)
{
    const auto before = [](const OperatorExample &a, const OperatorExample &b) {
        return std::string_view(a.type) < std::string_view(b.type);
    };
    EXPECT_TRUE(std::is_sorted(std::begin(kOperatorExamples), std::end(kOperatorExamples), before));
    EXPECT_EQ(std::size(kOperatorExamples), 198U); // of ONNX 1.23, without what came after set 25
}

TEST(OperatorTable, IsWhatTheCodeDoes)
{
    const std::string path = PLANLOOM_SOURCE_DIR "/resources/operators.txt";
    std::ifstream file(path);
    std::ostringstream found;
    found << file.rdbuf();
    const std::string made = tableText();
    if (found.str() == made)
        return;
    const std::string fresh = ::testing::TempDir() + "operators.txt";
    std::ofstream(fresh) << made;
    std::istringstream left(found.str());
    std::istringstream right(made);
    std::string was;
    std::string is;
    while (std::getline(right, is)) {
        std::getline(left, was);
        if (was != is)
            break;
    }
    FAIL() << "resources/operators.txt says '" << was << "', but the code does '" << is
           << "'. What it should be is in " << fresh << ": look at what changed, then copy it.";
}

} // namespace
} // namespace planloom
