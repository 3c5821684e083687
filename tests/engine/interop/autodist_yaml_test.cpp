#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/interop/autodist_yaml.h"
#include "engine/table/row_setting.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <utility>

namespace planloom {
namespace {

Model modelOf(std::string_view spec)
{
    const auto forward = buildZooModel(spec);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward);
    EXPECT_TRUE(graph) << describe(graph.error());
    return Model(std::make_shared<const Graph>(*std::move(graph)));
}

const Model &llama()
{
    static const Model kModel =
        modelOf("zoo:llama?layers=2&hidden=32&heads=4&kv_heads=4&ffn=64&seq=8&vocab=96&batch=4");
    return kModel;
}

Result<AutodistRows> read(std::string_view text)
{
    return readAutodist(text, "c.yaml", llama(), "tp");
}

TEST(AutodistYaml, OnePositionIsASplitAndNoneIsCopies)
{
    const auto rows = read("- name: torch.nn.functional.linear\n"
                           "  parent_module: mlp\n"
                           "  allowed_partition_dims: [\"1,0\"]\n"
                           "  replica_allowed: false\n"
                           "- name: torch.nn.functional.embedding\n"
                           "  allowed_partition_dims: []\n");
    ASSERT_TRUE(rows) << describe(rows.error());
    EXPECT_TRUE(rows->notes.empty()) << rows->notes.front();
    ASSERT_EQ(rows->table.rows.size(), 2u);
    EXPECT_EQ(print(rows->table.rows[0]), "split kind:Linear & (in:*mlp* | name:*mlp*) : in1.0 over tp");
    EXPECT_EQ(rows->table.rows[0].origin, RowOrigin::Import);
    EXPECT_EQ(rows->table.rows[0].note, "c.yaml:1");
    EXPECT_NE(print(rows->table.rows[1]).find("replicate kind:Embedding"), std::string::npos)
        << print(rows->table.rows[1]);
}

TEST(AutodistYaml, TheLongestParentModuleCounts)
{
    const auto rows =
        read("- {name: torch.nn.functional.linear, parent_module: layers.1, "
             "allowed_partition_dims: ['1,0'], replica_allowed: false}\n"
             "- {name: torch.nn.functional.linear, allowed_partition_dims: [], replica_allowed: true}\n"
             "- {name: torch.nn.functional.linear, parent_module: layers.1, "
             "allowed_partition_dims: ['0,0']}\n");
    ASSERT_TRUE(rows) << describe(rows.error());
    ASSERT_EQ(rows->table.rows.size(), 2u);
    EXPECT_EQ(toString(rows->table.rows[1].selector), "kind:Linear & !(in:*layers.1* | name:*layers.1*)");
    ASSERT_EQ(rows->notes.size(), 1u);
    EXPECT_NE(rows->notes[0].find("line 3: an earlier entry"), std::string::npos) << rows->notes[0];
}

TEST(AutodistYaml, OfSeveralWaysTheSearchChooses)
{
    const auto rows = read("- name: torch.nn.functional.linear\n  parent_module: mlp\n"
                           "  allowed_partition_dims: [\"1,0\", \"1,1\"]\n"
                           "- name: torch.nn.functional.linear\n  parent_module: self_attn\n"
                           "  allowed_partition_dims: [\"1,0\", \"1,1\"]\n  replica_allowed: false\n");
    ASSERT_TRUE(rows) << describe(rows.error());
    ASSERT_EQ(rows->table.rows.size(), 2u);
    EXPECT_EQ(print(rows->table.rows[0]),
        "split kind:Linear & (in:*mlp* | name:*mlp*) & !(in:*self_attn* | name:*self_attn*) : in1.0 over tp "
        "or in1.1 over tp or replicate over tp");
    EXPECT_EQ(print(rows->table.rows[1]),
        "split kind:Linear & (in:*self_attn* | name:*self_attn*) : in1.0 over tp or in1.1 over tp");
    const auto back = parseTable(print(rows->table));
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(print(*back), print(rows->table));
    // Two positions of one identifier are one way.
    const auto same = read("- name: torch.nn.functional.linear\n  parent_module: mlp\n"
                           "  allowed_partition_dims: [\"1,0\", \"2,2\"]\n  replica_allowed: false\n");
    ASSERT_TRUE(same) << describe(same.error());
    EXPECT_EQ(print(same->table.rows[0]), "split kind:Linear & (in:*mlp* | name:*mlp*) : in1.0 over tp");
}

/// What the classes of modules are in a file of torch.export.
const std::map<std::string, std::string> kClasses{{"", "net.Net"}, {"layers.0", "net.Block"},
    {"layers.1", "net.Block"}, {"layers.0.self_attn", "net.SelfAttention"},
    {"layers.1.self_attn", "net.SelfAttention"}, {"layers.0.mlp", "net.FFN"}, {"layers.1.mlp", "net.FFN"}};

TEST(AutodistYaml, ModulesAreKnownByTheirClasses)
{
    const auto rows = readAutodist("- name: torch.nn.functional.linear\n  parent_module: SelfAttention\n"
                                   "  allowed_partition_dims: [\"1,0\"]\n  replica_allowed: false\n"
                                   "- name: torch.nn.functional.linear\n  parent_module: FFN\n"
                                   "  allowed_partition_dims: [\"1,1\"]\n  replica_allowed: false\n",
        "c.yaml", llama(), "tp", kClasses);
    ASSERT_TRUE(rows) << describe(rows.error());
    ASSERT_EQ(rows->table.rows.size(), 2u);
    for (const auto &[row, part] : {std::pair{0, "self_attn"}, {1, "mlp"}}) {
        int picked = 0;
        for (const OperatorId id :
            llama().index->select(rows->table.rows[static_cast<std::size_t>(row)].selector)) {
            const Operator &op = llama().graph->at(id);
            if (op.direction != Direction::Forward)
                continue;
            ++picked;
            EXPECT_EQ(op.kind, OperatorKind::Linear);
            EXPECT_NE(op.name.find(part), std::string::npos) << op.name;
        }
        EXPECT_GE(picked, 4);
    }
}

TEST(AutodistYaml, ConstraintsOnOperatorsInsideFusedOnesAreOnThese)
{
    for (const auto &[name, dims, row] :
        {std::tuple{"torch.softmax", "'0,0', '0,1'", "out0.0 over tp or out0.1 over tp"},
            {"torch.matmul", "'0,1', '1,1'", "out0.1 over tp"},
            {"torch.nn.functional.dropout", "'0,1'", "out0.1 over tp"}}) {
        SCOPED_TRACE(name);
        const auto rows = readAutodist("- {name: " + std::string(name)
                + ", parent_module: SelfAttention, allowed_partition_dims: [" + dims
                + "], replica_allowed: false}\n",
            "c.yaml", llama(), "tp", kClasses);
        ASSERT_TRUE(rows) << describe(rows.error());
        bool isOnAttention = false;
        for (const Row &each : rows->table.rows)
            isOnAttention = isOnAttention
                || (print(each).find("kind:Attention") != std::string::npos
                    && print(each).ends_with(std::string(" : ") + row));
        EXPECT_TRUE(isOnAttention) << print(rows->table);
    }
}

TEST(AutodistYaml, AnEntryThatIsAboutNothingSaysWhatThereIs)
{
    struct Case {
        const char *name;
        const char *parent;
        const char *there;
    };
    for (const Case &each : {Case{"torch.nn.functional.linera", "", "torch.nn.functional.linear"},
             Case{"torch.nn.functional.linear", "SelfAtention", "SelfAttention"},
             Case{"torch.nn.functional.linear", "MLP", "FFN"}}) {
        SCOPED_TRACE(each.parent);
        const auto rows = readAutodist("- name: torch.nn.functional.embedding\n  allowed_partition_dims: []\n"
                                       "- name: "
                + std::string(each.name)
                + (*each.parent ? "\n  parent_module: " + std::string(each.parent) : "")
                + "\n  allowed_partition_dims: ['1,0']\n",
            "c.yaml", llama(), "tp", kClasses);
        ASSERT_FALSE(rows);
        EXPECT_EQ(rows.error().where, "c.yaml:3:3");
        EXPECT_NE(rows.error().advice.find(each.there), std::string::npos) << rows.error().advice;
    }
}

TEST(AutodistYaml, ErrorsSayLineColumnAndReason)
{
    struct Case {
        const char *text;
        const char *place;
        const char *mentions;
    };
    const Case cases[]{
        {"name: x\n", "c.yaml:1:1", "expected a list"},
        {"- 3\n", "c.yaml:1:3", "expected a constraint"},
        {"- name: x\n", "c.yaml:1:3", "no 'allowed_partition_dims'"},
        {"- allowed_partition_dims: []\n", "c.yaml:1:3", "no 'name'"},
        {"- name: x\n  allowed_partition_dims: 3\n", "c.yaml:2:27", "a list of positions"},
        {"- name: x\n  allowed_partition_dims: [\"a\"]\n", "c.yaml:2:28", "expected a position"},
        {"- name: x\n  allowed_partition_dims: [\"1,\"]\n", "c.yaml:2:28", "expected a position"},
        {"- name: x\n  allowed_partition_dims: []\n  replica_allowed: maybe\n", "c.yaml:3:20",
            "true or false"},
        {"- name: x\n  allowed_partition_dims: []\n  replica_allowed: false\n", "c.yaml:1:3",
            "allows nothing"},
        {"- name: x\n  nmae: y\n", "c.yaml:2:3", "no member"},
        {"- name: x\n  name: y\n", "c.yaml:2:3", "second time"},
        {"- name: [\n", "c.yaml:2:1", "no YAML"},
        {"- name: torch.nn.functional.linear\n  allowed_partition_dims: [\"0,9\"]\n", "c.yaml:2:28",
            "no position"},
        {"- name: torch.unknown\n  allowed_partition_dims: [\"0,0\"]\n", "c.yaml:1:3", "no operator"},
    };
    for (const Case &one : cases) {
        SCOPED_TRACE(one.text);
        const auto rows = read(one.text);
        ASSERT_FALSE(rows);
        EXPECT_EQ(rows.error().where, one.place) << rows.error().message;
        EXPECT_NE(rows.error().message.find(one.mentions), std::string::npos) << rows.error().message;
    }
    EXPECT_EQ(read(std::string(kMostAutodistBytes + 1, ' ')).error().code, ErrorCode::ResourceLimit);
    ASSERT_TRUE(read(""));
}

TEST(AutodistYaml, WhatIsWrittenReadsBackAsTheSameCuts)
{
    const auto table = parseTable("mesh tp=2\n"
                                  "split kind:Linear & in:*mlp : out0.-1 over tp\n"
                                  "split kind:Linear & in:*self_attn : in0.-1 over tp\n"
                                  "replicate kind:Embedding : by 2 over tp\n"
                                  "recompute layer:* per layer\n");
    ASSERT_TRUE(table) << describe(table.error());
    const AutodistText written = writeAutodist(*table, llama(), 2, "tp");
    ASSERT_EQ(written.notes.size(), 1u) << written.notes.back();
    EXPECT_NE(written.notes[0].find("no word for 'recompute'"), std::string::npos);
    const auto back = readAutodist(written.yaml, "back.yaml", llama(), "tp");
    ASSERT_TRUE(back) << describe(back.error()) << "\n" << written.yaml;
    EXPECT_TRUE(back->notes.empty()) << back->notes.front() << "\n" << written.yaml;
    const auto cutsOf = [](const ConstraintTable &rows) {
        std::map<OperatorId, std::pair<SplitKind, std::int32_t>> cuts;
        const RowSetting setting{llama(), 2, {{"tp", 2}}};
        for (const Row &row : rows.rows) {
            const auto *rule = std::get_if<OpTransRule>(&row.rule);
            for (const OperatorId op :
                rule ? setting.index().select(row.selector) : std::vector<OperatorId>{})
                if (llama().graph->at(op).direction == Direction::Forward)
                    if (const auto split = splitOf(setting, op, rule->steps[0]); split && split->parts > 1)
                        cuts[op] = {split->kind, split->dimension};
        }
        return cuts;
    };
    EXPECT_EQ(cutsOf(back->table), cutsOf(*table)) << written.yaml;
    EXPECT_FALSE(cutsOf(*table).empty());
}

TEST(AutodistYaml, AnyTextIsReadOrRefusedWithAPlace)
{
    const std::string valid = "- name: torch.nn.functional.linear\n  parent_module: mlp\n"
                              "  allowed_partition_dims: [\"1,0\", \"0,2\"]\n  replica_allowed: false\n";
    const std::string alphabet = "[]{}:-,\"'\n #&*!|>%@`\\t01";
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        std::string text = valid;
        for (std::uint32_t edits = random() % 5 + 1; edits > 0; --edits) {
            const std::size_t at = random() % text.size();
            if (random() % 2)
                text[at] = alphabet[random() % alphabet.size()];
            else
                text.insert(at, 1, alphabet[random() % alphabet.size()]);
        }
        const auto rows = read(text);
        if (!rows) {
            EXPECT_EQ(rows.error().where.substr(0, 6), "c.yaml") << text;
        }
    }
    EXPECT_FALSE(read(std::string(20000, '[')));
}

TEST(AutodistYaml, IsAboutTheAxisThatSharesTheWork)
{
    EXPECT_EQ(autodistAxis({}), "tp");
    EXPECT_EQ(autodistAxis({{"dp", 2}, {"pp", 2}}), "tp"); // none does: rows say what is missing
    EXPECT_EQ(autodistAxis({{"dp", 2}, {"mp", 2}}), "mp");
    EXPECT_EQ(autodistAxis({{"cp", 2}, {"tp", 2}}), "tp");
}

} // namespace
} // namespace planloom
