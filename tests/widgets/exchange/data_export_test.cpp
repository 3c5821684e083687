#include "widgets/exchange/data_export.h"
#include "widgets/exchange/drop_reader.h"

#include <QtCore/QFile>
#include <QtCore/QMimeData>
#include <QtCore/QTemporaryDir>
#include <QtCore/QUrl>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace planloom {
namespace {

PlanUpdateSnapshot plan()
{
    PlanRequest request;
    request.model = *openModel({"zoo:mlp?layers=2&hidden=8&batch=4", {}, {}}, {});
    request.table = TableDocument("mesh dp=2\nsplit all : batch over dp  # a note, with a comma\nnonsense\n");
    request.target = {"dgx-a100", {}, 2};
    PlanUpdateSnapshot last;
    const auto make = [&] {
        makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    };
    make();
    if (!last->scene) {
        request.table = TableDocument("mesh dp=2\nsplit all : batch over dp\n");
        make();
    }
    return last;
}

std::vector<std::string> linesOf(const std::string &csv)
{
    std::vector<std::string> lines;
    std::istringstream stream(csv);
    for (std::string line; std::getline(stream, line);) {
        EXPECT_EQ(line.back(), '\r');
        lines.push_back(line.substr(0, line.size() - 1));
    }
    return lines;
}

TEST(DataExport, RowsSayWhatBecameOfThem)
{
    const TableDocument table("# a note\nmesh dp=2\noff split all : batch over dp\nnonsense\n");
    const auto lines = linesOf(rowsCsv(table, nullptr));
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[1], "2,1,mesh dp=2,,,");
    EXPECT_EQ(lines[2].substr(0, 4), "3,0,");
    EXPECT_EQ(lines[3].substr(0, 12), "4,,nonsense,");
    EXPECT_GT(lines[3].size(), 16U); // the error in words
    const auto known =
        linesOf(rowsCsv(TableDocument("mesh dp=2\nsplit all : batch over dp\n"), plan().get()));
    EXPECT_NE(known[2].find(",0,"), 0U);
    EXPECT_EQ(std::count(known[2].begin(), known[2].end(), ','), 5);
}

TEST(DataExport, SpansNameTheirQueues)
{
    const auto update = plan();
    ASSERT_TRUE(update->scene);
    const auto lines = linesOf(spansCsv(*update->scene));
    EXPECT_EQ(lines[0], "device,queue,segment,micro_batch,operator,instruction,start_ns,duration_ns");
    std::size_t ofData = 0;
    const SpanColumns &spans = update->scene->timeline->spans;
    for (std::size_t row = 0; row < spans.size(); ++row) {
        const std::string begin = std::to_string(spans.device[row]) + ',' + nameOf(spans.queue[row]) + ',';
        EXPECT_EQ(lines[row + 1].substr(0, begin.size()), begin);
        ofData += spans.queue[row] == QueueKind::Data ? 1 : 0;
    }
    EXPECT_GT(ofData, 0U) << "gradients of both replicas";
}

TEST(DataExport, SpansMemoryAndTrafficHoldAllThereIs)
{
    const auto update = plan();
    ASSERT_TRUE(update->scene);
    const Timeline &timeline = *update->scene->timeline;
    EXPECT_EQ(linesOf(spansCsv(*update->scene)).size(), timeline.spans.size() + 1);
    std::size_t points = 0;
    for (const MemoryCurve &curve : timeline.memory)
        points += curve.time.size();
    const auto memory = linesOf(memoryCsv(timeline));
    EXPECT_EQ(memory.size(), points + 1);
    EXPECT_EQ(std::count(memory[0].begin(), memory[0].end(), ','), 1 + kMemoryKindCount);
    const auto traffic = linesOf(trafficCsv(timeline));
    ASSERT_EQ(traffic.size(), timeline.traffic.size() + 1);
    std::int64_t bytes = 0;
    for (std::size_t i = 1; i < traffic.size(); ++i) {
        std::vector<std::string> cells;
        std::istringstream stream(traffic[i]);
        for (std::string cell; std::getline(stream, cell, ',');)
            cells.push_back(cell);
        ASSERT_EQ(cells.size(), 5U);
        bytes += std::stoll(cells[3]);
    }
    EXPECT_EQ(bytes,
        std::accumulate(timeline.traffic.begin(), timeline.traffic.end(), std::int64_t{0},
            [](std::int64_t sum, const Traffic &one) { return sum + one.bytes.count; }));
}

class Drop : public testing::Test
{
protected:
    QString file(const char *name, const QByteArray &bytes)
    {
        QFile file(m_folder.filePath(QLatin1String(name)));
        EXPECT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(bytes);
        return file.fileName();
    }
    QTemporaryDir m_folder;
};

TEST_F(Drop, KnowsModelsSessionsAndRows)
{
    EXPECT_EQ(readDroppedFile(file("a.onnx", "whatever")).kind, DropKind::Model);
    EXPECT_EQ(
        readDroppedFile(file("b.dat", QByteArray("SQLite format 3\0rest", 20))).kind, DropKind::Session);
    const Dropped rows = readDroppedFile(file("c.txt", "mesh dp=2\nsplit all : batch over dp\n"));
    EXPECT_EQ(rows.kind, DropKind::Rows);
    EXPECT_EQ(rows.text, QStringLiteral("mesh dp=2\nsplit all : batch over dp\n"));
}

TEST_F(Drop, KnowsFilesAboutMachines)
{
    for (const QString &path : {file("node.xml", "<system version=\"1\"/>"),
             file("matrix.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"),
             file("topology.conf", "SwitchName=a Nodes=n[1-4]\n"),
             file("h100.yaml", "gpu:\n  mem_bw: 1\nnode:\n  num_gpus_per_node: 8\n")}) {
        const Dropped dropped = readDroppedFile(path);
        EXPECT_EQ(dropped.kind, DropKind::Topology) << path.toStdString();
        EXPECT_EQ(dropped.path, path);
    }
    // Partition constraints stay what they are.
    EXPECT_EQ(readDroppedFile(file("rows.yaml", "- name: x\n")).kind, DropKind::Rows);
}

TEST_F(Drop, KnowsConfigsOfFrameworks)
{
    for (const QString &path : {file("train.sh", "torchrun pretrain_gpt.py --tensor-model-parallel-size 2\n"),
             file("accelerate.yaml", "# of accelerate\ndistributed_type: FSDP\nnum_processes: 8\n"),
             file("ds.json", "{\"zero_optimization\": {\"stage\": 3}}\n")}) {
        const Dropped dropped = readDroppedFile(path);
        EXPECT_EQ(dropped.kind, DropKind::Config) << path.toStdString();
        EXPECT_FALSE(dropped.text.isEmpty());
    }
    QMimeData text;
    text.setText("--num-layers 8 --hidden-size 64");
    EXPECT_EQ(readDrop(text).kind, DropKind::Config);
}

TEST_F(Drop, SaysWhyItCantUseTheRest)
{
    for (const QString &path : {file("d.png", QByteArray("\x89PNG\0\0", 6)), file("e.txt", "dear diary\n"),
             m_folder.path(), m_folder.filePath("gone.onnx")}) {
        const Dropped dropped = readDroppedFile(path);
        EXPECT_EQ(dropped.kind, DropKind::Unsupported) << path.toStdString();
        EXPECT_TRUE(dropped.reason.endsWith(QLatin1Char('.')) || dropped.reason.contains("such as"))
            << dropped.reason.toStdString();
    }
    QMimeData several;
    several.setUrls({QUrl::fromLocalFile("/a"), QUrl::fromLocalFile("/b")});
    EXPECT_TRUE(readDrop(several).reason.contains("one at a time"));
    QMimeData far;
    far.setUrls({QUrl("https://example.org/a.onnx")});
    EXPECT_EQ(readDrop(far).kind, DropKind::Unsupported);
    QMimeData text;
    text.setText("place layer:0 : devices 1");
    EXPECT_EQ(readDrop(text).kind, DropKind::Rows);
}

} // namespace
} // namespace planloom
