// Writes the small valid files that fuzzing starts from: make_seeds FOLDER, a folder below it for each
// target.

#include "engine/design/make_plan.h"
#include "engine/gallery/embedded_gallery.h"
#include "engine/gallery/gallery_file.h"
#include "engine/interop/configs/write_config.h"
#include "engine/interop/npz.h"
#include "engine/lesson/embedded_lessons.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"
#include "sessions/session_store.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/pt2_for_tests.h"
#include "tests/engine/interop/machines/machine_texts.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

using namespace planloom;
namespace fs = std::filesystem;

namespace {

void write(const fs::path &path, std::string_view bytes)
{
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string_view asText(const std::vector<std::byte> &bytes)
{
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// An exported fully connected layer, a block of attention, and shape arithmetic.
void writeModels(const fs::path &folder)
{
    using testing_support::OnnxFile;
    OnnxFile linear;
    linear.input("x", {4, 6}).weight("w", {5, 6}).weight("b", {5}).output("y");
    linear.node("Gemm", {"x", "w", "b"}, {"h"}, "/fc/Gemm").set("transB", 1);
    linear.node("Relu", {"h"}, {"y"}, "/fc/Relu");
    write(folder / "linear.onnx", linear.bytes());

    OnnxFile attention(13);
    attention.input("x", {2, 4, 8})
        .weight("wq", {8, 8})
        .weight("wk", {8, 8})
        .weight("scale", {1})
        .output("y");
    attention.node("MatMul", {"x", "wq"}, {"q"}, "/h.0/attn/q/MatMul");
    attention.node("MatMul", {"x", "wk"}, {"k"}, "/h.0/attn/k/MatMul");
    attention.node("Transpose", {"k"}, {"kt"}).set("perm", std::vector<std::int64_t>{0, 2, 1});
    attention.node("MatMul", {"q", "kt"}, {"s"});
    attention.node("Mul", {"s", "scale"}, {"scaled"});
    attention.node("Softmax", {"scaled"}, {"p"}).set("axis", -1);
    attention.node("MatMul", {"p", "x"}, {"y"});
    write(folder / "attention.onnx", attention.bytes());

    OnnxFile shapes(11);
    shapes.input("x", {2, 6}).list("minus", {-1}).list("first", {0}).output("y");
    shapes.node("Shape", {"x"}, {"shape"});
    shapes.node("Gather", {"shape", "first"}, {"rows"}).set("axis", 0);
    shapes.node("Concat", {"rows", "minus"}, {"target"}).set("axis", 0);
    shapes.node("Reshape", {"x", "target"}, {"r"});
    shapes.node("ReduceMean", {"r"}, {"m"}).set("axes", std::vector<std::int64_t>{1}).set("keepdims", 1);
    shapes.node("Sub", {"r", "m"}, {"y"});
    write(folder / "shapes.onnx", shapes.bytes());

    OnnxFile convolution(12);
    convolution.input("x", {1, 2, 6, 6}).weight("w", {3, 2, 3, 3}).output("y");
    convolution.node("Conv", {"x", "w"}, {"c"}).set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    convolution.node("MaxPool", {"c"}, {"y"}).set("kernel_shape", std::vector<std::int64_t>{2, 2});
    write(folder / "convolution.onnx", convolution.bytes());
}

/// Every statement of an operator file, a body and a derivative.
void writeOperatorFiles(const fs::path &folder)
{
    write(folder / "body.ops", R"(planloom-operators 1
operator my.ops::Swish
inputs x, scale
outputs y
attribute beta = 1.0
annotation * h, h -> * h
body
    z = Mul(x, beta)
    g = Sigmoid(z)
    m = Mul(x, g)
    y = Mul(m, scale)
end
)");
    write(folder / "library.ops", R"(planloom-operators 1
operator my.ops::Mix
also my_ops::mix
inputs x, [mask: bool], index: int64
outputs y, count: int64
saves kept: like x
attribute beta = 2
attribute name = "text"
annotation b (h d) k+, b h, 4 -> b (h d), ?, b^
linear x
where d = 2 * beta
shape count = [b, ceil(b / 2)]
flops 14 * b * h * whole(k)
backward_flops 3 + b * (h - 1)
units matrix
workspace 8 * max(b, h)
library "libmix.so" mix
derivative my.ops::MixGradient(d.y, x, kept) -> d.x

operator my.ops::MixGradient
inputs dy, x, kept
outputs dx: like x
body
    r = Reshape(x) : [2, 3]
    a, c = Split(x, axis=-1, sizes=[1, 5])
    i = Cast(r) : int64
    s = Softmax(kept, axis=-1)
    dx = Mul(s, 0.5)
end
)");
}

/// An archive of torch.export.save, its program and the list of its weights.
void writePrograms(const fs::path &folder)
{
    write(folder / "linear.pt2", testing_support::zipOf(testing_support::linearMembers()));
    write(folder / "long.pt2", testing_support::zipOf(testing_support::linearMembers(), true));
    write(folder / "program.json", testing_support::linearProgram());
    write(folder / "weights.json", testing_support::linearWeights());
}

Result<void> writePlansAndTables(const fs::path &root)
{
    struct Sample {
        const char *name;
        const char *model;
        const char *gallery;
        int devices;
    };
    const Sample samples[]{{"single", "zoo:mlp?layers=1&hidden=2&batch=2", "single", 1},
        {"data", "zoo:mlp?layers=1&hidden=2&batch=2", "data-parallel", 2},
        {"tensor", "zoo:mlp?layers=2&hidden=4&batch=2", "tensor-parallel", 2},
        {"pipeline", "zoo:mlp?layers=2&hidden=2&batch=2", "pipeline:micro-batches=2", 2}};
    for (const Sample &sample : samples) {
        ModelSource source{sample.model, {}, {}};
        source.options.optimizer = Optimizer::Sgd; // no states: seeds stay small
        PlanRequest request;
        TRY(request.model, openModel(source));
        request.needsTraining = true;
        request.gallery = sample.gallery;
        request.target = {"cpu", {}, sample.devices};
        request.upTo = PlanGrade::Lowered;
        TRY(const auto answer, planOf(request));
        const ConstraintTable table = answer->table.table();
        write(root / "execution_plan" / (std::string(sample.name) + ".json"), toJson(*answer->execution));
        write(root / "table" / (std::string(sample.name) + ".txt"), print(table));
        write(root / "table" / (std::string(sample.name) + ".json"), toJson(table).dump(2) + "\n");
    }
    write(root / "table" / "rules.txt",
        "mesh dp=2 pp=2 tp=2\nmicro-batches 4\nsplit name:*.attn.c_attn & !in:h.0 : out0.-1 over tp # a "
        "note\n"
        "split set{a b} : m into 3,5 then value by 2\nreplicate kind:LayerNorm | kind:Gelu : by 2 over tp\n"
        "coshard in:h.0.mlp : n by 4\nplace layer:0-5 : pp=0\nplace name:\"a b\" : devices 0,1,1,2\n"
        "order name:a before name:b at -2\nschedule 1f1b\nstage layer:0-5 : 0\nrecompute layer:* per layer\n"
        "order name:a before name:b at +1 of 3\nin-flight 3 stage 0\nin-flight 2\nlimit memory 40GiB\nlimit "
        "time 1.5ms\n"
        "zero1 weight:* over dp\noff split all : \"batch\" by 2  @gesture\n"
        "schedule interleaved\nprecision all : bf16\nprecision kind:Linear : fp16 scale=1024\n"
        "precision kind:Softmax : compute=fp32 storage=fp32\nprecision layer:0 : fp8\n"
        "attention layer:0-5 : plain\nattention all : fused\noverlap tensor\noverlap none\n"
        "coshard in:h.0.mlp : feed-forward by 4 keep\noffload all : states\nsplit-backward layer:0\n"
        "zero3 layer:* over dp prefetch 2\nring kind:Attention : over cp\nweight-versions layer:0-5 : 2\n"
        "communicate layer:2 reductions after layer:0 & backward\n"
        "communicate layer:0 sends before layer:1 sends at +1 of 2\n"
        "prefer 2 split kind:Linear : heads by 4\nmicro-batches 4 whole\nmicro-batches 8 update every 2\n");
    return {};
}

Result<void> writeArrays(const fs::path &folder)
{
    TensorData floats;
    floats.type = {DataType::Float32, {2, 3}};
    floats.bytes.resize(24);
    TensorData integers;
    integers.type = {DataType::Int64, {2}};
    integers.bytes.resize(16);
    write(folder / "array.npy", asText(formatNpy(floats)));
    TRY(const auto archive, formatNpz({{"in.x", floats}, {"labels", integers}}));
    write(folder / "arrays.npz", asText(archive));
    return {};
}

Result<void> writeSession(const fs::path &folder)
{
    fs::create_directories(folder);
    SessionContents contents;
    contents.model.source = "zoo:mlp?layers=2";
    contents.model.options["loss"] = "loss";
    contents.view["theme"] = "dark";
    contents.history =
        History({TableDocument("split all : batch by 2\n"), {{"cluster", "cpu"}, {"devices", "2"}}});
    History &history = contents.history;
    TRY_VOID(history.record("add a row", {insertText(history.state().table, 1, "micro-batches 2"), {}}, 1));
    TRY_VOID(history.record("4 devices", {{}, {{"devices", "2", "4"}}}, 2));
    history.undo();
    TRY_VOID(history.record("remove a row", {removeLines(history.state().table, {0}), {}}, 3));
    history.setName("best", 2);
    history.setFigures(1, {0.5, 1024, true});
    contents.runs = {{1, 2, 4, "2 CPU devices", "done", "{}", R"({"spans":[]})"}};
    fs::remove(folder / "mlp.planloom");
    TRY(auto store, SessionStore::create(folder / "mlp.planloom", contents));
    return store.cachePlan(1, std::string(5000, ' '));
}

/// Every format's config of one run.
void writeConfigs(const std::filesystem::path &folder)
{
    FrameworkConfig config;
    for (const auto &[field, value] :
        {std::pair("devices", 16.0), std::pair("tensor_parallel", 2.0), std::pair("pipeline_parallel", 4.0),
            std::pair("data_parallel", 2.0), std::pair("global_batch", 32.0), std::pair("micro_batch", 2.0),
            std::pair("micro_batches", 8.0), std::pair("zero", 1.0), std::pair("layers", 8.0),
            std::pair("hidden", 64.0), std::pair("heads", 4.0), std::pair("sequence", 64.0)})
        config.derive(field, value);
    config.derive("layout", std::string("Et*1|t*2|t*2|t*3L"));
    config.derive("recompute_modules", std::vector<std::string>{"core_attn", "mlp"});
    for (const ConfigFormat &format : configFormats())
        write(folder / std::string(format.name), printConfig(format, config));
}

/// A rank of each kind of trace.
void writeTraces(const std::filesystem::path &folder)
{
    write(folder / "kineto.json",
        R"({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, "dur": 90},
{"ph": "X", "cat": "cuda_runtime", "name": "l", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args": {"correlation": 3}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5.25, "dur": 9, "args": {"stream": 7, "correlation": 3}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 20, "dur": 9, "args": {"stream": 8, "Collective name":
"allreduce", "dtype": "Half", "In msg nelems": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 1}}]})");
    write(folder / "log.jsonl",
        R"({"v": 1, "t": "live", "device": 0, "step": [1], "segment": [0], "instruction": [2], "micro_batch": [0], "start": [5],
"duration": [7]})");
}

void writeMachines(const std::filesystem::path &folder)
{
    write(folder / "hgx.xml", hgxTopology());
    write(folder / "mesh.xml", meshTopology());
    write(folder / "matrix.txt", matrixText(4, "NV4"));
    write(folder / "query.txt", queryText(4, "NVIDIA GB200", 189471, "7f2c"));
    write(folder / "topology.conf", kTopologyConf);
    write(folder / "topology.yaml", kTopologyYaml);
    write(folder / "simumax.json", kSimumaxSystem);
    write(folder / "aiconfigurator.yaml", kAiconfiguratorSystem);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fputs("make_seeds FOLDER: writes the files that fuzzing starts from\n", stderr);
        return 2;
    }
    const fs::path root = argv[1];
    writeModels(root / "import_onnx");
    writePrograms(root / "import_pt2");
    writeOperatorFiles(root / "operator_file");
    for (const EmbeddedGalleryFile &file : embeddedGallery())
        write(root / "gallery_file" / (std::string(file.name) + kGalleryFileEnding), std::string(file.text));
    fs::create_directories(root / "lesson");
    for (const EmbeddedLesson &lesson : embeddedLessons())
        write(root / "lesson" / (std::string(lesson.name) + ".md"), std::string(lesson.text));
    writeConfigs(root / "read_config");
    writeTraces(root / "trace");
    writeMachines(root / "read_machine");
    for (const auto &done :
        {writePlansAndTables(root), writeArrays(root / "npz"), writeSession(root / "session")}) {
        if (!done) {
            std::fprintf(stderr, "make_seeds: %s\n", describe(done.error()).c_str());
            return 1;
        }
    }
    return 0;
}
