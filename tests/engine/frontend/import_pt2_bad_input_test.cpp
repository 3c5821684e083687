// Damaged, contradictory and hostile programs of PyTorch: an error that names the place, or a graph that is
// valid; never a crash.

#include "engine/base/files.h"
#include "engine/frontend/torch/import_pt2.h"
#include "engine/frontend/torch/pt2_symbols.h"
#include "planloom_paths.h"
#include "tests/engine/frontend/pt2_for_tests.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace planloom {
namespace {

using testing_support::linearMembers;
using testing_support::linearProgram;
using testing_support::linearWeights;
using testing_support::ZipMember;
using testing_support::zipOf;

ImportOptions tight()
{
    ImportOptions options;
    options.mostFoldedBytes = std::size_t{1} << 20;
    options.mostOperators = 5'000;
    return options;
}

/// The error a program is refused with; fails the test if it is not.
Error refusalOf(const std::vector<ZipMember> &members)
{
    const auto graph = importPt2Bytes(zipOf(members), tight());
    EXPECT_FALSE(graph) << "was imported";
    if (graph)
        return {};
    EXPECT_FALSE(graph.error().message.empty());
    EXPECT_NE(graph.error().code, ErrorCode::Internal) << describe(graph.error());
    return graph.error();
}

std::string replaced(std::string text, const std::string &from, const std::string &to)
{
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

/// The archive with another program.
std::vector<ZipMember> withProgram(const std::string &from, const std::string &to)
{
    auto members = linearMembers();
    members[2].content = replaced(members[2].content, from, to);
    return members;
}

std::vector<ZipMember> withWeights(const std::string &from, const std::string &to)
{
    auto members = linearMembers();
    members[1].content = replaced(members[1].content, from, to);
    return members;
}

void expectMentions(const Error &error, const std::string &text)
{
    EXPECT_NE(describe(error).find(text), std::string::npos)
        << "'" << text << "' is not in: " << describe(error);
}

TEST(Pt2Strides, ThatKeepTheOrderOfElementsAreAView)
{
    const std::string plain =
        R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "mm"}}}],)";
    const auto strided = [](const char *sizes, const char *strides) {
        return R"({"target": "torch.ops.aten.as_strided.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "mm"}}},
{"name": "size", "arg": {"as_ints": )"
            + std::string(sizes) + R"(}}, {"name": "stride", "arg": {"as_ints": )" + strides + "}}],";
    };
    const auto kindOf = [](const std::vector<ZipMember> &members) {
        const auto graph = importPt2Bytes(zipOf(members), tight());
        EXPECT_TRUE(graph) << describe(graph.error());
        return graph ? graph->operators.back().kind : OperatorKind::Unknown;
    };
    EXPECT_NE(kindOf(withProgram(plain, strided("[2, 2]", "[2, 1]"))), OperatorKind::Unknown);
    EXPECT_EQ(kindOf(withProgram(plain, strided("[2, 2]", "[1, 2]"))), OperatorKind::Unknown);
    // What it reads lies turned in memory.
    auto turned = withProgram(plain, strided("[2, 2]", "[2, 1]"));
    const std::string meta =
        R"("mm": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 2}], "requires_grad": false, "strides": [)";
    turned[2].content = replaced(turned[2].content, meta + R"({"as_int": 2}, {"as_int": 1}])",
        meta + R"({"as_int": 1}, {"as_int": 2}])");
    EXPECT_EQ(kindOf(turned), OperatorKind::Unknown);
}

TEST(Pt2BadInput, TheSoundArchiveOpens)
{
    for (const bool zip64 : {false, true}) {
        const auto graph = importPt2Bytes(zipOf(linearMembers(), zip64), tight());
        ASSERT_TRUE(graph) << describe(graph.error());
        EXPECT_TRUE(validate(*graph));
        EXPECT_EQ(graph->operators.size(), 2U);
    }
}

TEST(Pt2BadInput, OtherArchivesAreNamedWithTheWayOut)
{
    expectMentions(refusalOf({{"archive/data.pkl", "x"}, {"archive/data/0", "x"}}), "checkpoint");
    expectMentions(refusalOf({{"m/data.pkl", "x"}, {"m/constants.pkl", "x"}}), "TorchScript");
    expectMentions(refusalOf({{"x.npy", "x"}}), "NumPy");
    expectMentions(refusalOf({{"readme.txt", "x"}}), "torch.export.save");
    auto two = linearMembers();
    two.push_back({"m/models/other.json", linearProgram()});
    expectMentions(refusalOf(two), "2 programs");
}

TEST(Pt2BadInput, OtherVersionsOfTheSchemaAreRefusedByName)
{
    const Error error = refusalOf(withProgram(R"("major": 8, "minor": 14)", R"("major": 7, "minor": 3)"));
    expectMentions(error, "7.3");
    EXPECT_EQ(error.code, ErrorCode::NotSupported);
    expectMentions(error, "save it anew");
    auto big = linearMembers();
    big[4].content = "big";
    expectMentions(refusalOf(big), "little-endian");
}

TEST(Pt2BadInput, NamesOfEntriesStayInTheArchive)
{
    for (const char *name : {"../m/models/model.json", "/m/models/model.json", "m/models/a\nb.json",
             "m/x/../models/model.json", "m\\models\\model.json", ""}) {
        SCOPED_TRACE(name);
        auto members = linearMembers();
        members.push_back({name, "{}"});
        refusalOf(members);
    }
    auto twice = linearMembers();
    twice.push_back(twice[0]);
    expectMentions(refusalOf(twice), "two entries");
    auto shared = linearMembers();
    shared.push_back({"m/data/weights/weight_1", shared[0].content, 0, 0, -1, 0});
    expectMentions(refusalOf(shared), "shares bytes");
    auto encrypted = linearMembers();
    encrypted[0].flags = 1;
    expectMentions(refusalOf(encrypted), "encrypted");
}

TEST(Pt2BadInput, JsonIsBoundedInDepthAndChecked)
{
    const auto withText = [](const std::string &text) {
        auto members = linearMembers();
        members[2].content = text;
        return refusalOf(members);
    };
    expectMentions(withText(std::string(1'000'000, '[')), "nested deeper");
    expectMentions(
        withText(R"({"a":)" + std::string(300, '[') + std::string(300, ']') + "}"), "nested deeper");
    for (const char *text : {"", "[]", "null", "{", "{}", R"({"schema_version": {"major": 8, "minor": "x"}})",
             R"({"schema_version": {"major": 8, "minor": 1}, "graph_module": 3})", "\xff\xfe", "1e999"}) {
        SCOPED_TRACE(text);
        withText(text);
    }
    expectMentions(
        refusalOf(withProgram(R"("name": "relu")", R"("name": "re\u0000lu")")), "control characters");
    expectMentions(
        refusalOf(withProgram(R"(L__self__fc,fc,Linear)", R"(L__self__fc,f\nc,Linear)")), "control");
}

TEST(Pt2BadInput, GraphsThatContradictThemselvesAreRefused)
{
    expectMentions(refusalOf(withProgram(R"("mat2", "arg": {"as_tensor": {"name": "p_w")",
                       R"("mat2", "arg": {"as_tensor": {"name": "q")")),
        "'q', which nothing makes");
    expectMentions(refusalOf(withProgram(R"("outputs": [{"as_tensor": {"name": "mm"}}],)",
                       R"("outputs": [{"as_tensor": {"name": "x"}}],)")),
        "made twice");
    expectMentions(refusalOf(withProgram(R"("mm": {"dtype": 7, "sizes": [{"as_int": 2})",
                       R"("mm": {"dtype": 7, "sizes": [{"as_int": 5})")),
        "declares float32[5 2]");
    expectMentions(refusalOf(withProgram(R"("x": {"dtype": 7)", R"("x": {"dtype": 29)")), "float8_e4m3fn");
    // Complex numbers are read as pairs; a product of them is no real tensor.
    expectMentions(refusalOf(withProgram(R"("x": {"dtype": 7)", R"("x": {"dtype": 10)")), "complex numbers");
    expectMentions(refusalOf(withProgram(R"("x": {"dtype": 7, "sizes": [{"as_int": 2})",
                       R"("x": {"dtype": 7, "sizes": [{"as_int": 4611686018427387904})")),
        "'x'");
    expectMentions(refusalOf(withProgram(R"("name": "mat2", "arg": {"as_tensor": {"name": "p_w"}})",
                       R"("name": "mat2", "arg": {"as_int": 3})")),
        "should be a tensor");
    expectMentions(refusalOf(withProgram(R"("outputs": [{"as_tensor": {"name": "y"}}],)",
                       R"("outputs": [{"as_tensor": {"name": "z"}}],)")),
        "returns 'z', which nothing makes");
    expectMentions(refusalOf(withProgram(R"({"user_output": {"arg": {"as_tensor": {"name": "y"}}}})",
                       R"({"gradient_to_parameter": {"arg": {"name": "y"}, "parameter_name": "fc.w"}})")),
        "backward pass");
}

TEST(Pt2BadInput, ValuesLieInTheirStorage)
{
    expectMentions(
        refusalOf(withWeights(R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": 1})")),
        "end at element 6 of a storage of 6");
    refusalOf(withWeights(R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": -1})"));
    refusalOf(
        withWeights(R"({"as_int": 2}, {"as_int": 1})", R"({"as_int": 4611686018427387904}, {"as_int": 1})"));
    refusalOf(withWeights(R"("sizes": [{"as_int": 3})", R"("sizes": [{"as_int": 4})"));
    refusalOf(withWeights(R"("dtype": 7)", R"("dtype": 8)"));
    expectMentions(refusalOf(withWeights("weight_0", "weight_7")), "does not hold");
    refusalOf(withWeights("weight_0", "../../weight_0"));
    auto cut = linearMembers();
    cut[0].content.resize(20);
    expectMentions(refusalOf(cut), "storage of 5");
}

TEST(Pt2BadInput, PickledValuesAreMissingNotRun)
{
    const auto graph =
        importPt2Bytes(zipOf(withWeights(R"("use_pickle": false)", R"("use_pickle": true)")), tight());
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_FALSE(graph->notes.empty());
    EXPECT_NE(graph->notes.front().find("pickle"), std::string::npos);

    // The layout of PyTorch 2.6 and 2.7.
    const auto old = importPt2Bytes(
        zipOf({{"serialized_exported_program.json", linearProgram()}, {"serialized_state_dict.pt", "PK"},
            {"serialized_constants.pt", "PK"}, {"version", "8.1"}}),
        tight());
    ASSERT_TRUE(old) << describe(old.error());
    EXPECT_EQ(old->operators.size(), 2U);
    ASSERT_FALSE(old->notes.empty());
    EXPECT_NE(old->notes.front().find("--random-weights"), std::string::npos);
}

TEST(Pt2BadInput, UnknownOperatorsStayWithTheirDeclaredTypes)
{
    const auto graph = importPt2Bytes(zipOf(withProgram("aten.relu.default", "mine.twist.default")), tight());
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->operators.back().kind, OperatorKind::Unknown);
    EXPECT_EQ(graph->operators.back().attributes.text("onnx_type"), "mine.twist.default");
    expectMentions(refusalOf(withProgram("torch.ops.aten.relu.default", "torch.ops.higher_order.cond")),
        "calls no graph");
}

TEST(Pt2BadInput, DamageIsAnErrorOrAValidGraph)
{
    std::mt19937 random(11);
    const auto members = linearMembers();
    int refused = 0;
    for (int i = 0; i < 4000; ++i) {
        auto damaged = members;
        std::string &text = damaged[1 + random() % 2].content; // the JSON; checksums are right again
        for (unsigned k = 0; k <= random() % 3; ++k) {
            const std::size_t at = random() % text.size();
            if (random() % 2 == 0)
                text[at] = static_cast<char>(random());
            else
                text.erase(at, 1 + random() % 5);
        }
        const auto graph = importPt2Bytes(zipOf(damaged), tight());
        refused += graph ? 0 : 1;
        if (graph)
            EXPECT_TRUE(validate(*graph));
        else
            EXPECT_NE(graph.error().code, ErrorCode::Internal) << describe(graph.error());
    }
    EXPECT_GT(refused, 2000);
}

TEST(Pt2Size, IsComputedFromBothSpellings)
{
    const Pt2SymbolLookup sizes = [](const std::string &name) {
        return name == "s0" ? std::optional<std::int64_t>(6)
            : name == "s1"  ? std::optional<std::int64_t>(4)
                            : std::nullopt;
    };
    const std::pair<const char *, std::int64_t> cases[] = {{"s0", 6}, {"4*s0 + 1", 25}, {"(s0 + s1)//3", 3},
        {"-s0 + 10", 4}, {"s0**2 - s1", 32}, {"Symbol('s0', positive=True, integer=True)", 6},
        {"Mul(Integer(4), Symbol('s1', integer=True))", 16}, {"Add(Symbol('s0'), Integer(-2))", 4},
        {"FloorDiv(Symbol('s0'), Integer(4))", 1}, {"Mul(Rational(1, 2), Symbol('s0'))", 3},
        {"Max(1, Mod(s0, s1))", 2}, {"Pow(Symbol('s1'), Integer(2))", 16}, {"ceiling(s0/4)", 2}};
    for (const auto &[text, expected] : cases)
        EXPECT_EQ(evaluatePt2Size(text, sizes), std::optional(expected)) << text;
    for (const char *text : {"", "s2", "s0 +", "s0/4", "Pow(s0", "Symbol(s0)", "s0 s1", "1/0", "Max()",
             "__import__('os')", "10**400"})
        EXPECT_EQ(evaluatePt2Size(text, sizes), std::nullopt) << text;
    EXPECT_EQ(evaluatePt2Size(std::string(4000, '('), sizes), std::nullopt);
    EXPECT_EQ(evaluatePt2Size(std::string(4000, '-') + "1", sizes), std::nullopt);
    EXPECT_EQ(symbolsOfPt2Size("Mul(Symbol('a'), b)"), (std::set<std::string>{"a", "b"}));
}

} // namespace
} // namespace planloom
