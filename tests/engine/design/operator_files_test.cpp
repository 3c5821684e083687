// Models with operators of files: found, planned, run in parts like whole, remembered, and trusted or not.

#include "engine/design/models/opened_model.h"
#include "engine/design/models/operator_files.h"
#include "engine/design/remembered.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/runtime/training/check.h"
#include "engine/simulate/simulate.h"
#include "engine/table/text_cursor.h"
#include "engine/verify/verify.h"

#include "tests/engine/check/swish_for_tests.h"
#include "tests/engine/check/swish_model.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

namespace fs = std::filesystem;
using testing_support::modelWith;
using testing_support::OnnxFile;
using testing_support::swishFile;
using testing_support::testLibrary;

/// A folder with files, and another one for the user.
class OperatorFiles : public testing::Test
{
protected:
    void SetUp() override
    {
        const auto *test = testing::UnitTest::GetInstance()->current_test_info();
        m_folder = fs::path(testing::TempDir()) / (std::string("operators_") + test->name());
        fs::remove_all(m_folder);
        fs::create_directories(userFolder());
        setenv("XDG_CONFIG_HOME", (m_folder / "config").c_str(), 1);
    }
    void TearDown() override { fs::remove_all(m_folder); }

    fs::path userFolder() const { return m_folder / "config" / "planloom" / "operators"; }
    fs::path write(const fs::path &path, const std::string &bytes) const
    {
        const fs::path whole = path.is_absolute() ? path : m_folder / path;
        std::ofstream(whole, std::ios::binary) << bytes;
        return whole;
    }
    Result<ModelSnapshot> open(const std::string &model, const ModelOptions &options = {}) const
    {
        ModelSource source{(m_folder / model).string(), {}, options};
        source.options.optimizer = Optimizer::Sgd;
        return openModel(source);
    }
    /// The operator that a file defines.
    static const Operator &swishOf(const Graph &graph)
    {
        for (const Operator &op : graph.operators)
            if (op.kind == OperatorKind::Custom && op.direction == Direction::Forward)
                return op;
        ADD_FAILURE() << "no such operator";
        return graph.operators.front();
    }

    fs::path m_folder;
};

/// Proven, also behind its file; two steps equal those of the model on one device.
void expectRunsLikeTheModel(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    SCOPED_TRACE(rows);
    auto lowered = loweredRows(graph, rows, devices);
    ASSERT_TRUE(lowered) << describe(lowered.error());
    auto plan = executionPlanFromJson(toJson(*lowered));
    ASSERT_TRUE(plan) << describe(plan.error());
    Graph withValues = *plan->graph;
    for (std::size_t t = 0; t < withValues.tensors.size(); ++t)
        withValues.tensors[t].data = graph->tensors[t].data;
    plan->graph = std::make_shared<const Graph>(std::move(withValues));
    const auto report = verify(*plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.steps = 2;
    options.libraries = {testLibrary()};
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto reference = loweredRows(graph, {}, 1);
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto check = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

constexpr const char *kSwishRows[] = {"split all : batch by 2\nplace all : devices 0,1",
    "split name:act : h by 4\nplace name:act : devices 0,1,2,3",
    "split name:act : s by 2\nplace name:act : devices 1,2",
    "mesh a=2 c=2\nsplit name:act : b over a\nsplit name:act : h over c",
    "split name:fc1 : n by 4\nsplit name:act : h by 4\nsplit name:fc2 : k by 4\n"
    "place name:fc1 | name:act | name:fc2 : devices 0,1,2,3",
    "micro-batches 4\nsplit name:act : h by 2\nplace name:act : devices 0,1",
    "recompute name:act per operator\nmicro-batches 2\nsplit all : batch by 2\nplace all : devices "
    "0,1"};

TEST_F(OperatorFiles, MakeModelsRunInPartsAsWhole)
{
    write("model.ops", swishFile());
    for (const char *type : {"ScaledSwish", "LibrarySwish"}) {
        SCOPED_TRACE(type);
        write("model.onnx", modelWith(type));
        const auto model = open("model.onnx");
        ASSERT_TRUE(model) << describe(model.error());
        ASSERT_FALSE((*model)->trainingProblem) << describe(*(*model)->trainingProblem);
        const Operator &swish = swishOf(*(*model)->graph);
        EXPECT_EQ(typeNameOf(swish), std::string("test.ops::") + type);
        EXPECT_EQ(swish.annotationProblem, "");
        EXPECT_EQ(swish.attributes.real("beta"), 1.5);
        for (const char *rows : kSwishRows)
            expectRunsLikeTheModel((*model)->graph, rows, 4);
        const std::string kind =
            "kind:" + asWord(typeNameOf(swish)); // rows know it by what its file calls it
        expectRunsLikeTheModel(
            (*model)->graph, "split " + kind + " : h by 2\nplace " + kind + " : devices 2,0", 3);
    }
}

TEST_F(OperatorFiles, TrainLikeTheSameModelOfKnownOperators)
{
    // The body's steps as nodes of the model, by ONNX's own operators.
    OnnxFile known;
    known.input("x", {8, 4, 6})
        .weight("fc1.weight", {6, 8})
        .weight("act.scale", {8})
        .weight("fc2.weight", {8, 6});
    known.node("MatMul", {"x", "fc1.weight"}, {"a"}, "/fc1/MatMul");
    known.node("Constant", {}, {"beta"}).set("value", OnnxFile::floats("", {}, {1.5F}));
    known.node("Mul", {"a", "beta"}, {"z"});
    known.node("Sigmoid", {"z"}, {"g"});
    known.node("Mul", {"a", "g"}, {"m"});
    known.node("Mul", {"m", "act.scale"}, {"s"}, "/act/Swish");
    known.node("MatMul", {"s", "fc2.weight"}, {"l"}, "/fc2/MatMul");
    known.node("Mul", {"l", "l"}, {"q"}, "/square/Mul");
    known.node("ReduceMean", {"q"}, {"loss"}, "/loss/Mean").set("keepdims", 0);
    known.output("loss");
    write("known.onnx", known.bytes());
    write("model.onnx", modelWith("ScaledSwish"));
    write("library.onnx", modelWith("LibrarySwish"));
    write("model.ops", swishFile());
    write("library.ops", swishFile());
    std::vector<std::vector<double>> losses;
    for (const char *name : {"known.onnx", "model.onnx", "library.onnx"}) {
        const auto model = open(name);
        ASSERT_TRUE(model) << describe(model.error());
        const auto plan = loweredRows((*model)->graph, {}, 1);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions options;
        options.steps = 5;
        options.libraries = {testLibrary()};
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        losses.push_back(outcome->losses);
    }
    EXPECT_NE(losses[0].front(), losses[0].back());
    for (std::size_t step = 0; step < 5; ++step) {
        EXPECT_NEAR(losses[0][step], losses[1][step], 1e-5 * losses[0][step]);
        EXPECT_NEAR(losses[0][step], losses[2][step], 1e-5 * losses[0][step]);
    }
}

/// x [4 2 6] through a product, the example's operator and a loss.
std::string modelWithGatedNorm(const OnnxFile &start, bool calls)
{
    OnnxFile file = start;
    file.input("x", {4, 2, 6})
        .weight("fc.weight", {6, 8})
        .weight("gate.weight", {6, 8})
        .weight("norm.scale", {8});
    file.node("MatMul", {"x", "fc.weight"}, {"a"}, "/fc/MatMul");
    file.node("MatMul", {"x", "gate.weight"}, {"g"}, "/gate/MatMul");
    if (calls) {
        file.node("GatedNorm", {"a", "g", "norm.scale"}, {"n"}, "/norm/GatedNorm")
            .proto->set_domain("example.ops");
    } else { // the function's nodes, by ONNX's own operators
        file.node("Mul", {"a", "a"}, {"squares"});
        file.node("ReduceMean", {"squares"}, {"mean"}).set("axes", std::vector<std::int64_t>{-1});
        file.node("Constant", {}, {"small"}).set("value", OnnxFile::floats("", {}, {1e-5F}));
        file.node("Add", {"mean", "small"}, {"shifted"});
        file.node("Sqrt", {"shifted"}, {"root"});
        file.node("Div", {"a", "root"}, {"normal"});
        file.node("Mul", {"normal", "norm.scale"}, {"scaled"});
        file.node("Sigmoid", {"g"}, {"open"});
        file.node("Mul", {"g", "open"}, {"wide"});
        file.node("Mul", {"scaled", "wide"}, {"n"});
    }
    file.node("Mul", {"n", "n"}, {"q"}, "/square/Mul");
    file.node("ReduceMean", {"q"}, {"loss"}, "/loss/Mean").set("keepdims", 0);
    file.output("loss");
    return file.bytes();
}

TEST_F(OperatorFiles, HaveBodiesInOnnxFiles)
{
    for (const char *name : {"gated_norm.ops", "gated_norm.onnx"})
        fs::copy_file(fs::path(PLANLOOM_SOURCE_DIR) / "resources" / "operators" / name, m_folder / name);
    write("calls.onnx", modelWithGatedNorm(OnnxFile(), true));
    write("known.onnx", modelWithGatedNorm(OnnxFile(), false));
    ModelOptions options;
    options.operatorFiles = {(m_folder / "gated_norm.ops").string()};
    std::vector<std::vector<double>> losses;
    for (const char *name : {"calls.onnx", "known.onnx"}) {
        const auto model = open(name, name == std::string("calls.onnx") ? options : ModelOptions{});
        ASSERT_TRUE(model) << describe(model.error());
        ASSERT_FALSE((*model)->trainingProblem) << describe(*(*model)->trainingProblem);
        const auto plan = loweredRows((*model)->graph, {}, 1);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions run;
        run.steps = 5;
        const auto outcome = runOnCpu(*plan, run);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        losses.push_back(outcome->losses);
    }
    EXPECT_NE(losses[0].front(), losses[0].back());
    for (std::size_t step = 0; step < 5; ++step) // so gradients are equal, too
        EXPECT_NEAR(losses[0][step], losses[1][step], 1e-5 * losses[1][step]);

    const auto model = open("calls.onnx", options);
    ASSERT_TRUE(model);
    EXPECT_EQ(typeNameOf(swishOf(*(*model)->graph)), "example.ops::GatedNorm");
    for (const char *rows : {"split all : batch by 2\nplace all : devices 0,1",
             "split name:norm : s by 2\nplace name:norm : devices 1,2",
             "micro-batches 2\nsplit name:norm : b by 2\nplace name:norm : devices 0,1"})
        expectRunsLikeTheModel((*model)->graph, rows, 4);

    fs::remove(m_folder / "gated_norm.onnx");
    const auto without = open("calls.onnx", options);
    ASSERT_FALSE(without);
    EXPECT_NE(without.error().where.find("gated_norm.ops:10:1"), std::string::npos) << without.error().where;
    EXPECT_NE(without.error().message.find("gated_norm.onnx"), std::string::npos) << without.error().message;
}

TEST_F(OperatorFiles, AreFoundBesideTheModelInTheUsersFolderAndByName)
{
    write("model.onnx", modelWith("ScaledSwish"));
    // Without one the operator is unknown, and the message says what helps.
    const auto unknown = open("model.onnx");
    ASSERT_TRUE(unknown && (*unknown)->planProblem); // open to be looked at
    EXPECT_NE((*unknown)->planProblem->advice.find("MODEL.ops beside the model"), std::string::npos);

    const fs::path user = write(userFolder() / "mine.ops", swishFile());
    auto model = open("model.onnx");
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ((*model)->source.options.operatorFiles, (std::set<std::string>{user.string()}));

    const fs::path beside = write("model.ops", swishFile());
    model = open("model.onnx");
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ((*model)->source.options.operatorFiles, (std::set<std::string>{beside.string()}));

    const fs::path named = write("other.ops", swishFile());
    ModelOptions options;
    options.operatorFiles = {named.string()};
    model = open("model.onnx", options);
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ((*model)->source.options.operatorFiles, (std::set<std::string>{named.string()}));
    EXPECT_EQ(modelOptionsOf(valuesOf((*model)->source.options))->operatorFiles, options.operatorFiles);
}

TEST_F(OperatorFiles, AreRememberedAndMissed)
{
    write("model.onnx", modelWith("ScaledSwish"));
    const fs::path named = write("other.ops", swishFile());
    ModelOptions options;
    options.operatorFiles = {named.string()};
    const auto model = open("model.onnx", options);
    ASSERT_TRUE(model) << describe(model.error());
    auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan);
    plan->origin = originOf((*model)->source, "cpu:1", {});
    const auto remembered = rememberedModel(*plan);
    ASSERT_TRUE(remembered) << describe(remembered.error());
    EXPECT_EQ(remembered->options.operatorFiles, options.operatorFiles);

    fs::remove(named);
    // A plan carries what the files held; one from before does not.
    plan->origin = originOf(**model, *clusterNamed("cpu:1"), {});
    const auto carried = rememberedModel(*plan);
    ASSERT_TRUE(carried) << describe(carried.error());
    const auto alone = openModel(*carried);
    ASSERT_TRUE(alone) << describe(alone.error());
    EXPECT_EQ((*alone)->graph->operators.size(), (*model)->graph->operators.size());
    const auto missing = openModel(*remembered);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    EXPECT_NE(missing.error().message.find(named.string()), std::string::npos);
    write(userFolder() / "other.ops", swishFile()); // moved
    EXPECT_TRUE(openModel(*remembered));
}

TEST_F(OperatorFiles, OfTheUsersFolderThatAreBrokenAreNotes)
{
    write("model.onnx", modelWith("ScaledSwish"));
    write(userFolder() / "bad.ops", "planloom-operators 1\nfrob\n");
    write(userFolder() / "good.ops", swishFile());
    const auto model = open("model.onnx");
    ASSERT_TRUE(model) << describe(model.error());
    const auto &notes = (*model)->graph->notes;
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
        [](const std::string &note) { return note.find("bad.ops:2:1") != std::string::npos; }));
    write("model.ops", "planloom-operators 1\nfrob\n"); // beside the model it is an error
    EXPECT_FALSE(open("model.onnx"));
}

TEST_F(OperatorFiles, GiveTrustToLibrariesOnlyWhereTheUserDid)
{
    write("model.onnx", modelWith("LibrarySwish"));
    write("model.ops", swishFile());
    EXPECT_EQ(*trustedLibraries({}), std::vector<std::string>{}); // beside a model: perhaps a stranger's
    EXPECT_EQ(
        *trustedLibraries({(m_folder / "model.ops").string()}), std::vector<std::string>{testLibrary()});
    const auto model = open("model.onnx");
    ASSERT_TRUE(model) << describe(model.error());
    const auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan);
    const auto refused = runOnCpu(*plan, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotSupported);
    EXPECT_NE(refused.error().advice.find("--allow-library " + testLibrary()), std::string::npos);
    write(userFolder() / "mine.ops", swishFile());
    EXPECT_EQ(*trustedLibraries({}), std::vector<std::string>{testLibrary()});
}

TEST_F(OperatorFiles, SayWhatDoesNotFitTheModel)
{
    write("model.onnx", modelWith("ScaledSwish", false));
    const auto errorOf = [this](const std::string &from, const std::string &to) {
        std::string text = swishFile();
        text.replace(text.find(from), from.size(), to);
        write("model.ops", text);
        const auto model = open("model.onnx");
        if (!model)
            return describe(model.error());
        return (*model)->planProblem ? describe(*(*model)->planProblem) : std::string("none");
    };
    EXPECT_EQ(errorOf("beta = 1.0", "beta = 2.0"), "none");
    EXPECT_NE(errorOf("beta = 1.0", "beta").find("'beta' is missing"), std::string::npos);
    EXPECT_NE(errorOf("b s h, h -> b s h", "b s h, s -> b s h").find("'s' is 4, but the tensor has 8"),
        std::string::npos);
    EXPECT_NE(errorOf("x, scale", "x, scale: int64").find("where int64 was expected"), std::string::npos);
    EXPECT_NE(errorOf("m = Mul(x, g)", "m = MatMul(x, g)").find("line 13"), std::string::npos);
}

TEST_F(OperatorFiles, SayWhatMemoryAndTimeTheirOperatorsTake)
{
    write("model.onnx", modelWith("LibrarySwish"));
    const auto simulated = [this](const std::string &from, const std::string &to) {
        std::string text = swishFile();
        text.replace(text.rfind(from), from.size(), to);
        write("model.ops", text);
        const auto model = open("model.onnx");
        EXPECT_TRUE(model) << describe(model.error());
        const auto plan = loweredRows((*model)->graph, "split all : batch by 2\nplace all : devices 0,1", 2);
        EXPECT_TRUE(plan) << describe(plan.error());
        return *simulate(*plan, *clusterNamed("dgx-a100:2"));
    };
    const Timeline usual = simulated("workspace   8 * h", "workspace   8 * h");
    // The backward part of one device has 4 of 8 sequences: its workspace is what it adds to the peak.
    const Timeline large = simulated("workspace   8 * h", "workspace   1000 * b * h");
    EXPECT_GT(large.memory[0].peak.count, 1000 * 4 * 8);
    EXPECT_LE(large.memory[0].peak.count - usual.memory[0].peak.count, 1000 * 4 * 8);
    EXPECT_GT(large.memory[0].peak.count - usual.memory[0].peak.count, 1000 * 4 * 8 - 4096);
    const Timeline slow = simulated("flops       14 * b * s * h", "flops       1e12 * b / whole(b)");
    EXPECT_GT(slow.step - usual.step, std::chrono::milliseconds{10});
}

TEST_F(OperatorFiles, WithoutADerivativeStopTraining)
{
    write("model.onnx", modelWith("ScaledSwish"));
    std::string text = swishFile();
    text.replace(text.find("flops"), 0, "derivative none\n");
    write("model.ops", text);
    const auto model = open("model.onnx");
    ASSERT_TRUE(model) << describe(model.error());
    ASSERT_TRUE((*model)->trainingProblem);
    EXPECT_NE((*model)->trainingProblem->message.find("test.ops::ScaledSwish has no derivative"),
        std::string::npos);
}

} // namespace
} // namespace planloom
