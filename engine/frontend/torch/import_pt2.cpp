#include "engine/frontend/torch/import_pt2.h"

#include "engine/base/byte_source.h"
#include "engine/base/files.h"
#include "engine/frontend/complete_import.h"
#include "engine/frontend/finish_import.h"
#include "engine/frontend/open_dimensions.h"
#include "engine/frontend/torch/pt2_archive.h"
#include "engine/frontend/torch/pt2_nodes.h"
#include "engine/frontend/torch/pt2_stored.h"
#include "engine/frontend/torch/pt2_symbols.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// Tells storages of different places or layouts apart.
std::string placeOf(const Pt2Storage &storage)
{
    std::string text = std::to_string(storage.offset) + "+"
        + std::to_string(storage.meta.storageOffset.value.value_or(0)) + " " + storage.meta.typeName;
    for (const auto *list : {&storage.meta.sizes, &storage.meta.strides}) {
        text += " ";
        for (const Pt2Size &size : *list)
            text += std::to_string(size.value.value_or(-1)) + ",";
    }
    return text;
}

constexpr std::int64_t kSomeSize = 7919; ///< A prime: no expression of it but itself is likely to have it.

/// True for a size that is a symbol, and no more than that.
bool isSymbol(const std::string &expression, const std::set<std::string> &symbols)
{
    return symbols.size() == 1 && evaluatePt2Size(expression, [](const std::string &) {
        return std::optional<std::int64_t>(kSomeSize);
    }) == std::optional<std::int64_t>(kSomeSize);
}

OpenDimensions openDimensionsOf(const Pt2Program &program)
{
    OpenDimensions open;
    for (const Pt2InputSpec &spec : program.inputs) {
        const auto *tensor = std::get_if<Pt2Tensor>(&spec.argument);
        const auto found =
            tensor == nullptr ? program.graph.tensors.end() : program.graph.tensors.find(tensor->name);
        if (found == program.graph.tensors.end())
            continue;
        const std::vector<Pt2Size> &sizes = found->second.sizes;
        std::vector<std::vector<std::string>> names(sizes.size());
        std::vector<bool> whole(sizes.size());
        for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
            const auto symbols = symbolsOfPt2Size(sizes[axis].expression);
            names[axis].assign(symbols.begin(), symbols.end());
            whole[axis] = isSymbol(sizes[axis].expression, symbols);
        }
        open.addInput(tensor->name, found->second.dataType.value_or(DataType::Float32), names, whole);
    }
    for (const auto &[symbol, range] : program.ranges)
        open.setRange(symbol, range.least, range.most);
    return open;
}

/// Complex numbers as what they are in memory: pairs of real ones along a last dimension. Others stay.
Pt2Meta asPairs(Pt2Meta meta)
{
    if (!meta.partType)
        return meta;
    meta.dataType = meta.partType;
    meta.sizes.push_back({2, {}});
    for (Pt2Size &stride : meta.strides) {
        if (stride.value && *stride.value <= INT64_MAX / 2)
            stride.value = 2 * *stride.value;
    }
    meta.strides.push_back({1, {}});
    if (meta.storageOffset.value && *meta.storageOffset.value <= INT64_MAX / 2)
        meta.storageOffset.value = 2 * *meta.storageOffset.value;
    return meta;
}

class Pt2Importer
{
public:
    Pt2Importer(Pt2Archive archive, const Pt2Values &values, const ImportOptions &options, std::string where)
        : m_archive(std::move(archive))
        , m_values(values)
        , m_options(options)
        , m_where(std::move(where))
        , m_writer(options)
        , m_nodes(
              m_writer, [this](const std::string &symbol) { return sizeOf(symbol); }, m_where)
        , m_frame(m_archive.program.graph)
    {
    }

    Result<Graph> run();

private:
    Error error(ErrorCode code, std::string message, std::string advice) const
    {
        return {code, std::move(message), std::move(advice), m_where};
    }
    std::optional<std::int64_t> sizeOf(const std::string &symbol) const
    {
        const auto found = m_sizes.find(symbol);
        return found == m_sizes.end() ? std::nullopt : std::optional(found->second);
    }
    const Pt2Meta *metaOf(const std::string &value) const;
    Result<void> bindInput(const std::string &value, TensorId tensor);
    Result<TensorId> pairsOf(const AtenComplex &complex, const std::string &name);
    Result<void> addInput(const Pt2InputSpec &spec);
    Result<void> addStored(const Pt2InputSpec &spec, const std::string &value);
    Classification classify(const Pt2InputSpec &spec, const TensorType &type, bool wantsGradient);
    Result<void> checkChosen() const;
    Result<TensorType> typeOfInput(const std::string &value) const;
    Result<ReturnedValues> returnedBy(const std::vector<AtenValue> &values);
    std::vector<std::string> notes() const;

    Pt2Archive m_archive;
    const Pt2Values &m_values;
    const ImportOptions &m_options;
    std::string m_where;
    GraphWriter m_writer;
    Pt2NodeImporter m_nodes;
    Pt2Frame m_frame;
    std::map<std::string, std::int64_t> m_sizes{}; ///< Of symbols.
    std::map<std::string, TensorId> m_shared{}; ///< By place and role: tensors at one place are one.
    std::map<std::string, std::string> m_firstNames{}; ///< Of the parameters at a place.
    std::int64_t m_frozen = 0;
    std::int64_t m_missing = 0;
    std::int64_t m_withoutValues = 0;
};

const Pt2Meta *Pt2Importer::metaOf(const std::string &value) const
{
    const auto found = m_archive.program.graph.tensors.find(value);
    return found == m_archive.program.graph.tensors.end() ? nullptr : &found->second;
}

Result<TensorType> Pt2Importer::typeOfInput(const std::string &value) const
{
    const Pt2Meta *meta = metaOf(value);
    if (meta == nullptr)
        return error(ErrorCode::InvalidInput, "the program does not say what type '" + value + "' has",
            "save it anew with torch.export.save");
    if ((!meta->dataType && !meta->partType) || !meta->isStrided)
        return error(ErrorCode::NotSupported,
            "'" + value + "' is " + (meta->dataType ? std::string("sparse") : "of type " + meta->typeName)
                + ", which Planloom does not compute with",
            "use dense tensors of floats, integers or complex numbers");
    const auto type = m_nodes.declaredType(asPairs(*meta));
    if (!type || !checkedByteCount(*type) || type->shape.size() > 64)
        return error(ErrorCode::InvalidInput,
            "'" + value + "' has a shape that cannot be had, where sizes from 0 up were expected",
            "check the sizes given with --dim");
    return *type;
}

Result<void> Pt2Importer::addStored(const Pt2InputSpec &spec, const std::string &value)
{
    const auto storage = m_archive.storages.find(spec.target);
    // The module's own name of a weight that several parameters share is the first: readers may use any.
    std::string name = spec.target;
    if (storage != m_archive.storages.end() && spec.kind == Pt2InputKind::Parameter)
        name = m_firstNames.try_emplace(placeOf(storage->second), name).first->second;
    if (!m_frame.isUsed(value))
        return {};
    TRY(const TensorType type, typeOfInput(value));
    if (elementCount(type.shape) == 0) {
        m_frame.set(value, m_writer.addConstant(std::make_shared<const TensorData>(TensorData{type, {}})));
        return {};
    }
    const Classification taken = classify(spec, type, metaOf(value)->requiresGradient);
    const bool trained = taken.as == StoredAs::Parameter;
    const TensorRole role = trained ? TensorRole::Weight : TensorRole::Buffer;
    if (m_options.asInputs.count(spec.target) != 0) {
        const TensorId id = m_writer.addInput(spec.target, type);
        m_writer.classify(id, taken, spec.target);
        return bindInput(value, id);
    }
    if (storage == m_archive.storages.end()) {
        ++(m_archive.withoutValues.count(spec.target) != 0 ? m_withoutValues : m_missing);
        const TensorId id = m_writer.addStored(StoredTensor{spec.target, type, nullptr, {}, false}, role);
        m_writer.classify(id, taken, spec.target);
        return bindInput(value, id);
    }
    Pt2Storage pairs = storage->second;
    pairs.meta = asPairs(std::move(pairs.meta));
    TRY(StoredTensor tensor, m_values.stored(name, type, pairs, !trained));
    const auto [known, isNew] = m_shared.try_emplace(placeOf(storage->second) + (trained ? " weight" : ""));
    if (isNew) {
        known->second = m_writer.addStored(std::move(tensor), role);
        m_writer.classify(known->second, taken, name);
    }
    if (name != spec.target)
        m_writer.note("'" + spec.target + "' and '" + name + "' are one tensor");
    return bindInput(value, known->second);
}

/// Gives an input of the program its tensor; complex numbers are taken apart.
Result<void> Pt2Importer::bindInput(const std::string &value, TensorId tensor)
{
    if (!metaOf(value)->partType) {
        m_frame.set(value, tensor);
        return {};
    }
    const auto last = static_cast<std::int64_t>(m_writer.typeOf(tensor).shape.size()) - 1;
    AtenComplex complex;
    for (const std::int64_t part : {0, 1}) {
        TRY(const auto made,
            m_writer.emit(value + (part == 0 ? ".real" : ".imaginary"), SourceNode{"", "complex"},
                OperatorKind::Gather, attributesFrom({{"axis", last}}),
                {tensor, m_writer.addConstant(integerTensor({part}, {}))}, {}));
        (part == 0 ? complex.real : complex.imaginary) = made.front();
    }
    m_frame.set(value, complex);
    return {};
}

/// What a parameter, buffer or constant is: what a person says, else what the program's signature says.
Classification Pt2Importer::classify(const Pt2InputSpec &spec, const TensorType &type, bool wantsGradient)
{
    const auto chosen = m_options.storedAs.find(spec.target);
    const bool isFree = chosen != m_options.storedAs.end()
        && (chosen->second != StoredAs::Parameter || isFloating(type.dataType));
    if (m_options.asInputs.count(spec.target) != 0)
        return {.as = StoredAs::Constant, .why = "chosen by hand", .byHand = true};
    if (isFree)
        return {.as = chosen->second, .why = "chosen by hand", .byHand = true};
    if (spec.kind != Pt2InputKind::Parameter)
        return spec.kind == Pt2InputKind::Buffer
            ? Classification{.as = StoredAs::Buffer, .why = "the program says that it is a buffer"}
            : Classification{.as = StoredAs::Constant, .why = "the program says that it is a constant"};
    if (wantsGradient && isFloating(type.dataType))
        return {.why = "the program says that it is a parameter"};
    m_frozen += isFloating(type.dataType) ? 1 : 0;
    return {.as = StoredAs::Buffer, .why = "it is a parameter that wants no gradient"};
}

/// What a person decided must be about something.
Result<void> Pt2Importer::checkChosen() const
{
    std::set<std::string> chosen = m_options.asInputs;
    for (const auto &[name, as] : m_options.storedAs)
        chosen.insert(name);
    for (const Pt2InputSpec &spec : m_archive.program.inputs) {
        const auto *tensor = std::get_if<Pt2Tensor>(&spec.argument);
        chosen.erase(spec.kind == Pt2InputKind::User && tensor != nullptr ? tensor->name : spec.target);
        if (spec.kind == Pt2InputKind::User && tensor != nullptr
            && m_options.storedAs.count(tensor->name) != 0)
            return error(ErrorCode::NotSupported,
                "'" + tensor->name + "' is an input of the program, and cannot be stored",
                "register it as a parameter or buffer of the module");
    }
    if (chosen.empty())
        return {};
    return error(ErrorCode::NotFound, "the model stores no tensor called '" + *chosen.begin() + "'",
        "info --json lists what it stores under \"stored\"");
}

/// Complex numbers as pairs of real ones along a last dimension.
Result<TensorId> Pt2Importer::pairsOf(const AtenComplex &complex, const std::string &name)
{
    std::vector<TensorId> parts;
    const SourceNode source{"", "complex"};
    for (const TensorId part : {complex.real, complex.imaginary}) {
        TensorType type = m_writer.typeOf(part);
        type.shape.push_back(1);
        TRY(const auto made,
            m_writer.emit("output." + name + ".part", source, OperatorKind::Reshape, {}, {part}, {type}));
        parts.push_back(made.front());
    }
    const auto last = static_cast<std::int64_t>(m_writer.typeOf(complex.real).shape.size());
    TRY(const auto pairs,
        m_writer.emit(
            "output." + name, source, OperatorKind::Concat, attributesFrom({{"axis", last}}), parts, {}));
    return pairs.front();
}

Result<void> Pt2Importer::addInput(const Pt2InputSpec &spec)
{
    if (spec.kind == Pt2InputKind::Fixed)
        return {};
    if (spec.kind == Pt2InputKind::Unreadable)
        return error(ErrorCode::NotSupported,
            "the program takes an input of kind '" + spec.target + "', which Planloom cannot read",
            "write the module without it");
    const auto *tensor = std::get_if<Pt2Tensor>(&spec.argument);
    if (tensor == nullptr) {
        if (const auto *symbol = std::get_if<Pt2Symbol>(&spec.argument))
            return error(ErrorCode::NotSupported,
                "the input '" + symbol->name + "' is a number that changes from call to call",
                "pass it as a tensor, or export the model with a fixed one");
        return {}; // a number that the program has by now
    }
    if (m_frame.find(tensor->name) != nullptr)
        return error(
            ErrorCode::InvalidInput, "two inputs are called '" + tensor->name + "'", "export the model anew");
    if (spec.kind != Pt2InputKind::User)
        return addStored(spec, tensor->name);
    TRY(const TensorType type, typeOfInput(tensor->name));
    if (elementCount(type.shape) == 0) {
        m_writer.note("the input '" + tensor->name + "' has no elements (" + toString(type.shape)
            + "), and is left out");
        m_frame.set(
            tensor->name, m_writer.addConstant(std::make_shared<const TensorData>(TensorData{type, {}})));
        return {};
    }
    if (metaOf(tensor->name)->partType)
        m_writer.note("the input '" + tensor->name
            + "' is of complex numbers, which are given as pairs of real ones along a last dimension");
    return bindInput(tensor->name, m_writer.addInput(tensor->name, type));
}

Result<ReturnedValues> Pt2Importer::returnedBy(const std::vector<AtenValue> &values)
{
    ReturnedValues returned;
    returned.onlyScalarIsLoss = true;
    std::size_t count = 0;
    const auto &specs = m_archive.program.outputs;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const Pt2OutputSpec &spec = specs[i];
        const bool isReturned = spec.kind == Pt2OutputKind::User || spec.kind == Pt2OutputKind::Loss;
        count += isReturned ? 1 : 0;
        if (i >= values.size())
            continue;
        if (spec.kind == Pt2OutputKind::Gradient)
            return error(ErrorCode::NotSupported,
                "the program holds its backward pass as well, which Planloom makes itself",
                "save what torch.export.export returns, before a joint graph is made of it");
        const auto *name = std::get_if<Pt2Tensor>(&m_archive.program.graph.outputs[i]);
        if (name == nullptr || !isReturned)
            continue;
        AtenValue value = values[i];
        if (const auto *complex = std::get_if<AtenComplex>(&value)) {
            TRY(value, pairsOf(*complex, name->name));
        }
        const auto *id = std::get_if<TensorId>(&value);
        if (id == nullptr)
            return error(ErrorCode::InvalidInput,
                "the program returns '" + name->name + "', which nothing makes", "export the model anew");
        returned.values.push_back({name->name, *id, spec.kind == Pt2OutputKind::Loss});
    }
    if (returned.values.empty())
        return error(
            ErrorCode::InvalidInput, "the program returns no tensor", "return the loss from forward()");
    returned.isSingle = count == 1;
    return returned;
}

std::vector<std::string> Pt2Importer::notes() const
{
    std::vector<std::string> notes;
    const auto &outputs = m_archive.program.outputs;
    if (std::any_of(outputs.begin(), outputs.end(),
            [](const Pt2OutputSpec &spec) { return spec.kind == Pt2OutputKind::Mutation; }))
        notes.emplace_back("what the model writes into its own buffers or inputs is left out of the plan");
    const auto &nodes = m_archive.program.graph.nodes;
    if (m_archive.program.isCore && std::any_of(nodes.begin(), nodes.end(), [](const Pt2Node &node) {
            return node.target == "torch.ops.aten.alias.default";
        }))
        notes.emplace_back(
            "an aten.alias may stand for a detach() of the module: a program of core ATen does not say "
            "where gradients stop");
    if (m_frozen > 0)
        notes.push_back(std::to_string(m_frozen) + " parameters want no gradient and are not trained");
    if (m_archive.missing > 0)
        notes.push_back(std::to_string(m_archive.missing)
            + " tensors lie in the model's file, which is missing or another one by now: the model can be "
              "planned, a run draws them from its seed (on the command line with --random-weights)");
    if (m_withoutValues > 0)
        notes.push_back(std::to_string(m_withoutValues)
            + " tensors have no values, as the program was exported on the device meta or with fake tensors: "
              "the model can be planned, a run draws them from its seed (on the command line with "
              "--random-weights); which of them share memory is not known");
    if (m_missing <= m_archive.missing)
        return notes;
    const std::string what =
        std::to_string(m_missing) + " tensors lie in pickles, which are programs and are not run";
    notes.push_back(what
        + ": the model can be planned, a run draws them from its seed (on the command line with "
          "--random-weights)"
        + (m_archive.isOldLayout ? "; PyTorch 2.8 and newer save them as plain numbers" : ""));
    return notes;
}

/// Takes out what stops a gradient where none would come through: nothing before it is trained.
void dropIdleStops(Graph &graph)
{
    std::vector<bool> varied(graph.tensors.size());
    for (std::size_t i = 0; i < graph.tensors.size(); ++i)
        varied[i] = graph.tensors[i].role == TensorRole::Weight;
    std::vector<TensorId> instead(graph.tensors.size());
    std::set<TensorId> outputs(graph.outputs.begin(), graph.outputs.end());
    std::vector<Operator> kept;
    for (Operator &op : graph.operators) {
        bool any = false;
        for (TensorId &id : op.inputs) {
            if (id && instead[static_cast<std::size_t>(id.index)])
                id = instead[static_cast<std::size_t>(id.index)];
            any = any || (id && varied[static_cast<std::size_t>(id.index)]);
        }
        const bool stops = op.kind == OperatorKind::Identity && op.attributes.integer("detached") != 0;
        if (stops && !any && outputs.count(op.outputs.front()) == 0) {
            instead[static_cast<std::size_t>(op.outputs.front().index)] = op.inputs.front();
            continue;
        }
        for (const TensorId id : op.outputs) {
            if (id)
                varied[static_cast<std::size_t>(id.index)] = any && !stops;
        }
        kept.push_back(std::move(op));
    }
    graph.operators = std::move(kept);
}

Result<Graph> Pt2Importer::run()
{
    TRY_VOID(checkOptions(m_options, m_where));
    TRY(auto dimensions, openDimensionsOf(m_archive.program).resolve(m_options.dimensions, m_where));
    m_sizes = sizesOf(dimensions);
    TRY_VOID(checkChosen());
    for (const Pt2InputSpec &spec : m_archive.program.inputs)
        TRY_VOID(addInput(spec));
    std::unordered_set<std::string> names;
    for (const Pt2Argument &output : m_archive.program.graph.outputs) {
        if (const auto *tensor = std::get_if<Pt2Tensor>(&output))
            names.insert(tensor->name);
    }
    m_nodes.setOutputs(std::move(names));
    TRY(const auto values, m_nodes.run(m_frame));
    TRY(const ReturnedValues returned, returnedBy(values));
    TRY(Graph graph, finishImport(m_writer, returned, notes(), m_where));
    graph.dimensions = std::move(dimensions);
    dropIdleStops(graph);
    return graph;
}

constexpr std::uint64_t kMostKeptWhole = std::uint64_t{32} << 20U;

std::string absolutePath(const std::filesystem::path &path)
{
    std::error_code failure;
    const auto whole = std::filesystem::absolute(path, failure);
    return failure ? path.string() : whole.string();
}

Result<Graph> importArchive(Pt2Archive archive, const Pt2Values &values, const ImportOptions &options,
    const std::filesystem::path &path)
{
    TRY(Graph graph, Pt2Importer(std::move(archive), values, options, path.filename().string()).run());
    graph.name = path.stem().string();
    return completeImport(std::move(graph), options, false);
}

} // namespace

Result<std::vector<InputDimension>> pt2FileDimensions(
    const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(auto reader, openByteSource(path));
    const std::string where = path.filename().string();
    TRY(const Pt2Archive archive, readPt2Archive(std::move(reader), where));
    return openDimensionsOf(archive.program)
        .resolve(options.dimensions, where, OpenDimensions::Missing::Left);
}

Result<std::vector<InputDimension>> pt2Dimensions(
    std::string_view bytes, const ImportOptions &options, const std::filesystem::path &path)
{
    const std::string where = path.filename().string();
    TRY(const Pt2Archive archive, readPt2Archive(sourceOf(bytes), where));
    return openDimensionsOf(archive.program)
        .resolve(options.dimensions, where, OpenDimensions::Missing::Left);
}

Result<Graph> importPt2File(const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(const auto source, openByteSource(path));
    TRY(auto reader, openByteSource(path));
    TRY(Pt2Archive archive, readPt2Archive(std::move(reader), path.filename().string()));
    const Pt2Values values({source.get(), absolutePath(path)}, {});
    return importArchive(std::move(archive), values, options, path);
}

Result<Graph> importPt2Bytes(
    std::string_view bytes, const ImportOptions &options, const std::filesystem::path &path)
{
    const std::string where = path.filename().string();
    if (bytes.size() > options.mostFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "the file has " + std::to_string(bytes.size()) + " bytes, more than the "
                + std::to_string(options.mostFileBytes) + " that are allowed",
            "open it as a file", where};
    const auto source = sourceOf(bytes);
    std::unique_ptr<const ByteSource> beside;
    std::unique_ptr<const ByteSource> reader;
    if (auto opened = openByteSource(path))
        beside = *std::move(opened);
    if (auto opened = openByteSource(path))
        reader = *std::move(opened);
    TRY(Pt2Archive archive, readPt2Archive(sourceOf(bytes), where, std::move(reader)));
    const Pt2Values values({source.get(), {}}, {beside.get(), absolutePath(path)});
    return importArchive(std::move(archive), values, options, path);
}

Result<std::string> keptPt2Content(const std::filesystem::path &path, std::uint64_t most)
{
    TRY(auto source, openByteSource(path));
    if (source->size() > kMostKeptWhole)
        return withoutWeights(std::move(source), path.filename().string(), most);
    return readFile(path, {.what = "model file", .mostBytes = most});
}

} // namespace planloom
