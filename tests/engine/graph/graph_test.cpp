#include "engine/graph/graph.h"
#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <functional>

namespace planloom {

namespace {

TensorId addTensor(Graph &graph, std::string name, Shape shape, TensorRole role, TensorId of = {})
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type.shape = std::move(shape);
    tensor.role = role;
    tensor.of = of;
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

OperatorId addOperator(Graph &graph, std::string name, OperatorKind kind, std::string_view annotation,
    std::vector<TensorId> inputs, std::vector<TensorId> outputs)
{
    Operator op;
    op.name = std::move(name);
    op.kind = kind;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.scope = ScopeId{0};
    auto parsed = parseAnnotation(annotation, shapesOf(graph, op.inputs), shapesOf(graph, op.outputs));
    EXPECT_TRUE(parsed) << parsed.error().message;
    op.annotation = *parsed;
    graph.operators.push_back(std::move(op));
    return OperatorId{static_cast<std::int32_t>(graph.operators.size()) - 1};
}

/// loss = sum(x w), its gradient and one step: x is read by `linear` and saved for its backward operator.
///
/// Tensors: 0 x, 1 w, 2 y, 3 loss, 4 loss gradient, 5 y gradient, 6 w gradient, 7 new w.
/// Operators: 0 linear, 1 sum, 2 sum', 3 linear', 4 step.
Graph trainedLinear()
{
    Graph graph;
    graph.name = "linear";
    graph.scopes.push_back({"layers", ScopeId{0}, -1});
    graph.scopes.push_back({"3", ScopeId{1}, 0});
    const auto x = addTensor(graph, "x", {8, 4}, TensorRole::Input);
    const auto w = addTensor(graph, "w", {4, 2}, TensorRole::Weight);
    const auto y = addTensor(graph, "y", {8, 2}, TensorRole::Activation);
    const auto loss = addTensor(graph, "loss", {}, TensorRole::Activation);
    const auto lossGradient = addTensor(graph, "loss.grad", {}, TensorRole::Buffer);
    const auto yGradient = addTensor(graph, "y.grad", {8, 2}, TensorRole::Gradient, y);
    const auto wGradient = addTensor(graph, "w.grad", {4, 2}, TensorRole::Gradient, w);
    const auto wNew = addTensor(graph, "w.new", {4, 2}, TensorRole::Weight, w);
    graph.inputs = {x};
    graph.outputs = {loss};
    graph.loss = loss;

    addOperator(graph, "linear", OperatorKind::Linear, "m k+, k+ n -> m n", {x, w}, {y});
    addOperator(graph, "sum", OperatorKind::ReduceSum, "m+ n+ -> 1", {y}, {loss});
    const auto addBackward = [&](OperatorId forward, std::vector<TensorId> inputs,
                                 std::vector<TensorId> outputs) {
        const OperatorId id{static_cast<std::int32_t>(graph.operators.size())};
        Operator op = graph.at(forward);
        op.name += "'";
        op.direction = Direction::Backward;
        op.annotation = backwardAnnotation(op.annotation);
        op.inputs = std::move(inputs);
        op.outputs = std::move(outputs);
        op.mirror = forward;
        graph.at(forward).mirror = id;
        graph.operators.push_back(std::move(op));
    };
    addBackward(OperatorId{1}, {lossGradient, {}, {}}, {yGradient});
    addBackward(OperatorId{0}, {yGradient, x, w, {}}, {{}, wGradient});
    const auto step =
        addOperator(graph, "w.step", OperatorKind::SgdStep, "a b, a b -> a b", {w, wGradient}, {wNew});
    graph.at(step).direction = Direction::Optimizer;
    graph.operators[0].scope = ScopeId{2};
    return graph;
}

} // namespace

TEST(Graph, ShapesInFilesEndWhereTensorsBelongToEachOther)
{
    Graph graph;
    const auto a = addTensor(graph, "a", {4, 2}, TensorRole::Weight);
    const auto b = addTensor(graph, "b", {4, 2}, TensorRole::Weight, a);
    EXPECT_EQ(shapeInFiles(graph, b), (Shape{4, 2}));
    graph.at(a).fileShape = {2, 4};
    EXPECT_EQ(shapeInFiles(graph, b), (Shape{2, 4}));
    graph.at(a).fileShape.clear();
    graph.at(a).of = b; // a damaged file says so
    EXPECT_EQ(shapeInFiles(graph, b), (Shape{4, 2}));
}

TEST(Graph, UsesListProducersAndConsumersInOrder)
{
    const Graph graph = trainedLinear();
    const Uses uses = usesOf(graph);
    const auto ids = [](std::vector<std::int32_t> indices) {
        std::vector<OperatorId> result;
        for (const std::int32_t index : indices)
            result.push_back(OperatorId{index});
        return result;
    };
    EXPECT_EQ(uses.producers[0], ids({}));
    EXPECT_EQ(uses.consumers[0], ids({0, 3}));
    EXPECT_EQ(uses.consumers[1], ids({0, 3, 4}));
    EXPECT_EQ(uses.producers[2], ids({0}));
    EXPECT_EQ(uses.consumers[2], ids({1}));
    EXPECT_EQ(uses.producers[6], ids({3}));
    EXPECT_EQ(uses.consumers[7], ids({}));
}

TEST(Graph, UsesNameAnOperatorOnceHoweverOftenItReads)
{
    Graph graph;
    const auto x = addTensor(graph, "x", {4}, TensorRole::Input);
    const auto y = addTensor(graph, "y", {4}, TensorRole::Activation);
    graph.inputs = {x};
    addOperator(graph, "square", OperatorKind::Mul, "a, a -> a", {x, x}, {y});
    EXPECT_EQ(usesOf(graph).consumers[0].size(), 1U);
    const auto valid = validate(graph);
    EXPECT_TRUE(valid) << describe(valid.error());
}

TEST(Graph, PathsJoinTheScopes)
{
    const Graph graph = trainedLinear();
    EXPECT_EQ(pathOf(graph, ScopeId{0}), "");
    EXPECT_EQ(pathOf(graph, ScopeId{1}), "layers");
    EXPECT_EQ(pathOf(graph, ScopeId{2}), "layers.3");
    EXPECT_EQ(pathOf(graph, ScopeId{}), "");
}

TEST(Graph, ShapesOfAbsentTensorsAreEmpty)
{
    const Graph graph = trainedLinear();
    EXPECT_EQ(shapesOf(graph, graph.operators[2].inputs), (std::vector<Shape>{{}, {}, {}}));
    EXPECT_EQ(shapesOf(graph, graph.operators[3].outputs), (std::vector<Shape>{{}, {4, 2}}));
}

TEST(Graph, AStepWithoutFaultsIsValid)
{
    const auto valid = validate(trainedLinear());
    EXPECT_TRUE(valid) << describe(valid.error());
}

TEST(Graph, ValidationNamesWhatIsBroken)
{
    struct Fault {
        const char *what;
        std::function<void(Graph &)> make;
        const char *expected; ///< Part of the error's place and message.
    };
    const std::vector<Fault> faults{
        {"no model scope", [](Graph &g) { g.scopes.clear(); }, "scope:0"},
        {"scope cycle", [](Graph &g) { g.scopes[1].parent = ScopeId{2}; }, "ancestor"},
        {"scope without name", [](Graph &g) { g.scopes[1].name.clear(); }, "scope:1"},
        {"scope without parent", [](Graph &g) { g.scopes[2].parent = ScopeId{9}; }, "scope:2"},
        {"tensor without name", [](Graph &g) { g.tensors[2].name.clear(); }, "name"},
        {"two tensors of one name", [](Graph &g) { g.tensors[2].name = "x"; }, "tensor:x"},
        {"negative extent", [](Graph &g) { g.tensors[2].type.shape[0] = -8; }, "negative"},
        {"other elements in files",
            [](Graph &g) {
                g.tensors[1].fileShape = {2, 9};
            },
            "in files"},
        {"part of a tensor that is too small",
            [](Graph &g) {
                Shape whole = g.tensors[1].type.shape;
                whole[1] += 3;
                g.tensors[1].filePart = FilePart{"all", whole, 1, 4};
            },
            "no part of 'all'"},
        {"parts of one tensor that overlap",
            [](Graph &g) {
                Tensor &w = g.tensors[1];
                Shape whole = w.type.shape;
                whole[0] += 2;
                w.filePart = FilePart{"all", whole, 0, 0};
                Tensor again = w;
                again.name = "again";
                again.filePart->begin = 2;
                g.tensors.push_back(again);
            },
            "a part of 'all' beside 'w'"},
        {"parts of one tensor of two shapes",
            [](Graph &g) {
                Tensor &w = g.tensors[1];
                Shape whole = w.type.shape;
                whole[0] *= 2;
                w.filePart = FilePart{"all", whole, 0, 0};
                Tensor again = w;
                again.name = "again";
                again.filePart->begin = w.type.shape[0];
                again.filePart->shape[0] += 1;
                g.tensors.push_back(again);
            },
            "a part of 'all' beside 'w'"},
        {"a tensor of the name of one in parts",
            [](Graph &g) {
                Tensor &w = g.tensors[1];
                w.filePart = FilePart{g.tensors[2].name, w.type.shape, 0, 0};
            },
            "that is in parts"},
        {"part of a tensor of other dimensions",
            [](Graph &g) {
                Shape whole = g.tensors[1].type.shape;
                whole[0] += 1;
                g.tensors[1].filePart = FilePart{"all", whole, 1, 0};
            },
            "no part of 'all'"},
        {"gradient of nothing", [](Graph &g) { g.tensors[5].of = {}; }, "y.grad"},
        {"gradient of a missing tensor", [](Graph &g) { g.tensors[5].of = TensorId{99}; }, "y.grad"},
        {"gradient of another shape", [](Graph &g) { g.tensors[5].of = TensorId{1}; }, "[4 2]"},
        {"state of no weight",
            [](Graph &g) {
                g.tensors[7].role = TensorRole::OptimizerState;
                g.tensors[7].of = TensorId{6};
            },
            "not a weight"},
        {"values of another size",
            [](Graph &g) {
                auto data = std::make_shared<TensorData>();
                data->type = g.tensors[1].type;
                data->bytes.resize(31);
                g.tensors[1].data = data;
            },
            "expected 32 bytes"},
        {"input not listed", [](Graph &g) { g.inputs.clear(); }, "not listed"},
        {"input listed twice", [](Graph &g) { g.inputs.push_back(g.inputs[0]); }, "twice"},
        {"weight listed as input", [](Graph &g) { g.inputs.push_back(TensorId{1}); }, "another role"},
        {"missing output", [](Graph &g) { g.outputs.push_back(TensorId{50}); }, "graph:outputs"},
        {"loss is no output", [](Graph &g) { g.outputs.clear(); }, "tensor:loss"},
        {"loss is no scalar", [](Graph &g) { g.loss = TensorId{2}; }, "scalar"},
        {"operator without name", [](Graph &g) { g.operators[0].name.clear(); }, "name"},
        {"two operators of one name", [](Graph &g) { g.operators[0].name = "sum"; }, "not unique"},
        {"missing tensor", [](Graph &g) { g.operators[0].inputs[0] = TensorId{77}; }, "operator:linear"},
        {"makes nothing", [](Graph &g) { g.operators[0].outputs[0] = {}; }, "makes nothing"},
        {"missing scope", [](Graph &g) { g.operators[0].scope = {}; }, "scope"},
        {"wrong part of the step", [](Graph &g) { g.operators[0].direction = Direction::Optimizer; },
            "later part"},
        {"wrong order", [](Graph &g) { std::swap(g.operators[0], g.operators[1]); }, "before it is complete"},
        {"nothing makes it",
            [](Graph &g) {
                addTensor(g, "ghost", {8, 4}, TensorRole::Activation);
                g.operators[0].inputs[0] = TensorId{8};
            },
            "nothing makes"},
        {"two producers", [](Graph &g) { g.operators[1].outputs[0] = TensorId{2}; }, "two producers"},
        {"annotation of other slots", [](Graph &g) { g.operators[0].annotation.inputs.pop_back(); },
            "2 inputs"},
        {"annotation of another size", [](Graph &g) { g.operators[0].annotation.dimensions[0].size = 6; },
            "does not fit"},
        {"annotation of another rank", [](Graph &g) { g.operators[0].annotation.inputs[0].terms.pop_back(); },
            "does not fit"},
        {"two identifiers of one name", [](Graph &g) { g.operators[0].annotation.dimensions[0].name = "n"; },
            "two dimensions"},
        {"factor out of range", [](Graph &g) { g.operators[0].annotation.inputs[0].terms[0].factors[0] = 9; },
            "out of range"},
        {"linear input out of range", [](Graph &g) { g.operators[0].annotation.linearInputs = {2}; },
            "linear"},
        {"split of what is kept whole", [](Graph &g) { g.operators[0].annotationProblem = "halo"; }, "halo"},
        {"identifier that cuts no box",
            [](Graph &g) {
                auto &annotation = g.operators[4].annotation;
                annotation.inputs[0].terms[1] = annotation.inputs[0].terms[0];
                annotation.dimensions[1].size = 4;
            },
            "boxes"},
        {"forward operator that makes a weight", [](Graph &g) { g.tensors[2].role = TensorRole::Weight; },
            "role"},
        {"backward without mirror",
            [](Graph &g) {
                g.operators[3].mirror = {};
                g.operators[0].mirror = {};
            },
            "without its forward"},
        {"mirror of another", [](Graph &g) { g.operators[3].mirror = OperatorId{1}; }, "mirror"},
        {"backward of another kind", [](Graph &g) { g.operators[3].kind = OperatorKind::MatMul; }, "kind"},
        {"backward without its forward's slots",
            [](Graph &g) {
                g.operators[3].inputs.pop_back();
                g.operators[3].annotation.inputs.pop_back();
            },
            "expected 4 inputs"},
        {"gradient of another tensor", [](Graph &g) { g.operators[3].inputs[0] = TensorId{2}; }, "gradient"},
        {"backward reads another weight",
            [](Graph &g) {
                addTensor(g, "other", {4, 2}, TensorRole::Weight);
                g.operators[3].inputs[2] = TensorId{8};
            },
            "not its forward's input"},
        {"backward of other dimensions", [](Graph &g) { g.operators[3].annotation.dimensions[0].name = "q"; },
            "other dimensions"},
        {"optimizer with mirror", [](Graph &g) { g.operators[4].mirror = OperatorId{0}; }, "optimizer"},
    };
    for (const Fault &fault : faults) {
        SCOPED_TRACE(fault.what);
        Graph graph = trainedLinear();
        fault.make(graph);
        const auto result = validate(graph);
        if (result) {
            ADD_FAILURE() << "not found";
            continue;
        }
        EXPECT_EQ(result.error().code, ErrorCode::Internal);
        EXPECT_NE(describe(result.error()).find(fault.expected), std::string::npos)
            << describe(result.error());
    }
}

} // namespace planloom
