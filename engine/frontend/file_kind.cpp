#include "engine/frontend/file_kind.h"

#include "engine/frontend/onnx/onnx_wire.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace planloom {

namespace {

constexpr std::size_t kHead = 4096; ///< Bytes that tell text from other data.
constexpr char kIrVersion = '\x08'; ///< Tag of a model's first field: exporters write the fields in order.

bool begins(std::string_view bytes, std::string_view magic)
{
    return bytes.substr(0, magic.size()) == magic;
}

bool contains(std::string_view bytes, std::string_view part)
{
    return bytes.find(part) != std::string_view::npos;
}

/// Without spaces and ends of lines in front, and without the byte order mark of some editors.
std::string_view withoutMargin(std::string_view text)
{
    if (begins(text, "\xef\xbb\xbf"))
        text.remove_prefix(3);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

/// No control characters but those of text. Bytes of other languages' letters pass: who wrote it need not be
/// asked.
bool isText(std::string_view head)
{
    return std::none_of(head.begin(), head.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20U && c != '\t' && c != '\n' && c != '\r' && c != '\f') || byte == 0x7fU;
    });
}

std::string_view takeWord(std::string_view &line)
{
    const std::string_view word = line.substr(0, std::min(line.find_first_of(" \t\r\n"), line.size()));
    line = withoutMargin(line.substr(word.size()));
    return word;
}

/// The words that rows begin with are those of engine/plan/table_text.cpp, which lies above this room; a test
/// holds them together.
bool isRow(std::string_view line)
{
    static constexpr std::string_view kRules[] = {"mesh", "micro-batches", "split", "replicate", "coshard",
        "place", "order", "schedule", "stage", "recompute", "zero1", "zero2", "zero3", "offload", "ring",
        "split-backward", "weight-versions", "communicate", "slice", "lanes", "interleave", "in-flight",
        "limit", "precision", "overlap", "attention", "dim", "capacity", "unroll", "degree", "parts", "alike",
        "follow", "spread", "layout", "together", "apart", "zero0", "zero"};
    std::string_view word = takeWord(line);
    if (word == "off")
        word = takeWord(line);
    if (word == "prefer") {
        word = takeWord(line);
        if (!word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos)
            word = takeWord(line);
    }
    return std::find(std::begin(kRules), std::end(kRules), word) != std::end(kRules);
}

FileKind kindOfText(std::string_view text)
{
    while (begins(text, "#")) // a remark
        text = withoutMargin(text.substr(std::min(text.find('\n'), text.size())));
    return isRow(text) ? FileKind::Rows : FileKind::Text;
}

FileKind kindOfJson(std::string_view text)
{
    // Members are written in the order of their names: the format may stand behind all that is long.
    if (contains(text, "\"planloom-execution-plan\""))
        return FileKind::ExecutionPlan;
    if (contains(text, "\"planloom-table\""))
        return FileKind::Table;
    if (contains(text, "\"planloom-cluster\""))
        return FileKind::Cluster;
    return contains(text.substr(0, kHead), "\"traceEvents\"") ? FileKind::Trace : FileKind::Json;
}

/// Eight bytes of length, then a JSON header.
bool isSafetensors(std::string_view bytes)
{
    return bytes.size() > 9 && bytes[8] == '{' && bytes[7] == '\0' && bytes[6] == '\0'
        && contains(bytes.substr(0, kHead), "\"dtype\"");
}

constexpr const char *kOpenIt = "open it in the window, or make a plan of it with planloom-cli solve --out";
constexpr const char *kTakeRows =
    "open a model, then take the rows with File > Import Rows, or with planloom-cli solve --table";
constexpr const char *kAsInputs = "open the model; planloom-cli run --inputs takes arrays as its inputs";
constexpr const char *kOpenAModel =
    "open a model (.onnx, .pt2), a session (.planloom), or a model of the zoo such as zoo:mlp";

/// What people are told of a kind of file, in the order of `FileKind`.
struct KindWords {
    const char *name;
    const char *advice;
};

constexpr std::array<KindWords, 16> kWords{{
    {"an ONNX model", kOpenIt},
    {"a program exported by PyTorch", kOpenIt},
    {"an execution plan of Planloom",
        "open the model that it was made of; planloom-cli simulate, verify and run take the plan itself"},
    {"a table of rows", kTakeRows},
    {"a table of rows", kTakeRows},
    {"the description of a cluster",
        "open a model, then take it with File > Cluster from a File, or with planloom-cli solve --cluster"},
    {"a session of Planloom, or another SQLite database",
        "the window opens sessions, planloom-cli session lists and checks them"},
    {"a timeline for Perfetto", "look at it on ui.perfetto.dev; here, open the model that it was made of"},
    {"a NumPy array", kAsInputs},
    {"an archive of NumPy arrays", kAsInputs},
    {"a zip archive, such as a PyTorch checkpoint",
        "save the model with torch.export.save, or export it to ONNX, and open that file"},
    {"a file of weights alone (safetensors)",
        "export the model to ONNX, with its operators, and open that file"},
    {"an HDF5 file, as Keras writes them", "export the model to ONNX, as tf2onnx does, and open that file"},
    {"a compressed file", "unpack it, and open the .onnx file in it"},
    {"a JSON file that is none of Planloom's", kOpenAModel},
    {"plain text", kOpenAModel},
}};

} // namespace

std::optional<FileKind> findFileKind(std::string_view bytes)
{
    using namespace std::string_view_literals;
    if (begins(bytes, "SQLite format 3\0"sv))
        return FileKind::Session;
    if (begins(bytes, "\x93NUMPY"))
        return FileKind::Npy;
    if (begins(bytes, "PK\x03\x04")) {
        if (contains(bytes.substr(0, 512), ".npy")) // the name of its first entry stands 30 bytes behind
            return FileKind::Npz;
        // The directory stands at the end, with all names.
        const bool program = contains(bytes, "/models/") && contains(bytes, "archive_format");
        return program || contains(bytes, "serialized_exported_program.json") ? FileKind::ExportedProgram
                                                                              : FileKind::Archive;
    }
    if (begins(bytes, "\x89HDF\r\n"))
        return FileKind::Hdf5;
    for (const std::string_view packed : {"\x1f\x8b"sv, "\xfd\x37zXZ"sv, "\x28\xb5\x2f\xfd"sv, "BZh"sv}) {
        if (begins(bytes, packed))
            return FileKind::Compressed;
    }
    if (isSafetensors(bytes))
        return FileKind::Safetensors;
    if (const std::string_view text = withoutMargin(bytes); !text.empty() && isText(bytes.substr(0, kHead)))
        return begins(text, "{") || begins(text, "[") ? kindOfJson(text) : kindOfText(text);
    if (!bytes.empty() && bytes.front() == kIrVersion && scanOnnxWire(bytes).problem.empty())
        return FileKind::OnnxModel;
    return {};
}

const char *nameOf(FileKind kind)
{
    return kWords[static_cast<std::size_t>(kind)].name;
}

const char *adviceFor(FileKind kind)
{
    return kWords[static_cast<std::size_t>(kind)].advice;
}

} // namespace planloom
