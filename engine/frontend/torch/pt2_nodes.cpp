#include "engine/frontend/torch/pt2_nodes.h"

#include "engine/frontend/torch/pt2_numbers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr int kDeepestGraph = 32; ///< Graphs in graphs.
constexpr const char *kFunctional =
    "save exported.run_decompositions({}) instead, which writes nothing in place";

/// The only element of known values.
std::optional<AtenValue> itemOf(const std::shared_ptr<const TensorData> &data)
{
    if (!data || elementCount(data->type.shape) != 1)
        return std::nullopt;
    if (data->type.dataType == DataType::Bool)
        return AtenValue(integersOf(*data).front() != 0);
    if (isFloating(data->type.dataType))
        return AtenValue(realsOf(*data).front());
    return AtenValue(integersOf(*data).front());
}

/// Operators that are written in place are called as the plain ones with an underscore: "relu_".
bool writesInPlace(const std::string &name)
{
    return name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
}

/// True if elements of that shape lie one behind the other; strides of dimensions with one place say nothing.
bool isRowMajor(const Shape &shape, const std::vector<std::int64_t> &strides)
{
    std::int64_t expected = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        if (shape[d] > 1 && strides[d] != expected)
            return false;
        if (shape[d] < 1 || shape[d] > (std::int64_t{1} << 62) / expected)
            return false;
        expected *= shape[d];
    }
    return true;
}

} // namespace

std::string pt2PathOf(const Pt2Node &node, const std::vector<std::string> &modules)
{
    std::string name;
    std::string outer;
    for (const std::string &module : node.modules.empty() ? modules : node.modules) {
        const bool inside = !outer.empty() && module.size() > outer.size() + 1
            && module.compare(0, outer.size(), outer) == 0 && module[outer.size()] == '.';
        if (module == outer)
            continue;
        std::string part = inside ? module.substr(outer.size() + 1) : module;
        std::replace(part.begin(), part.end(), '/', '_');
        name += "/" + part;
        outer = module;
    }
    return name + "/" + node.name;
}

std::string pt2ShortTarget(const std::string &target)
{
    const std::string prefix = "torch.ops.";
    return target.compare(0, prefix.size(), prefix) == 0 ? target.substr(prefix.size()) : target;
}

std::vector<std::string> pt2ResultsOf(const Pt2Node &node)
{
    std::vector<std::string> names;
    for (const Pt2Argument &output : node.outputs) {
        if (const auto *tensor = std::get_if<Pt2Tensor>(&output)) {
            names.push_back(tensor->name);
        } else if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&output)) {
            for (const Pt2Tensor &item : *tensors)
                names.push_back(item.name);
        } else {
            names.emplace_back();
        }
    }
    return names;
}

Pt2NodeImporter::Pt2NodeImporter(GraphWriter &writer, Pt2SymbolLookup sizeOf, std::string where)
    : m_writer(writer)
    , m_sizeOf(std::move(sizeOf))
    , m_where(std::move(where))
{
}

Error Pt2NodeImporter::nodeError(
    const Pt2Node &node, ErrorCode code, std::string message, std::string advice) const
{
    return {code, "node '" + node.name + "' (" + pt2ShortTarget(node.target) + "): " + std::move(message),
        std::move(advice), "node:" + node.name};
}

std::optional<TensorType> Pt2NodeImporter::declaredType(const Pt2Meta &meta) const
{
    if (!meta.dataType)
        return std::nullopt;
    TensorType type{*meta.dataType, {}};
    for (const Pt2Size &size : meta.sizes) {
        const auto extent = size.value ? size.value : evaluatePt2Size(size.expression, m_sizeOf);
        if (!extent)
            return std::nullopt;
        type.shape.push_back(*extent);
    }
    return type;
}

std::optional<TensorType> Pt2NodeImporter::declaredType(const std::string &value) const
{
    const auto found = m_frame->graph().tensors.find(value);
    return found == m_frame->graph().tensors.end() ? std::nullopt : declaredType(found->second);
}

Result<void> Pt2NodeImporter::bind(const std::string &value, TensorId tensor)
{
    m_frame->set(value, tensor);
    return {};
}

Result<AtenValue> Pt2NodeImporter::valueOf(const std::string &name, const Pt2Node &node) const
{
    if (const AtenValue *value = m_frame->find(name))
        return *value;
    return nodeError(node, ErrorCode::InvalidInput, "it reads '" + name + "', which nothing makes",
        "export the model anew");
}

Result<AtenValue> Pt2NodeImporter::resolve(const Pt2Argument &argument, const Pt2Node &node) const
{
    if (std::holds_alternative<Pt2None>(argument))
        return AtenValue();
    if (const auto *tensor = std::get_if<Pt2Tensor>(&argument))
        return valueOf(tensor->name, node);
    if (const auto *symbol = std::get_if<Pt2Symbol>(&argument))
        return valueOf(symbol->name, node);
    if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&argument)) {
        std::vector<TensorId> ids;
        std::vector<AtenComplex> pairs;
        bool isComplex = false;
        for (const Pt2Tensor &item : *tensors) {
            AtenValue value = TensorId{};
            if (!item.name.empty()) {
                TRY(value, valueOf(item.name, node));
            }
            const auto *id = std::get_if<TensorId>(&value);
            const auto *complex = std::get_if<AtenComplex>(&value);
            if (id == nullptr && complex == nullptr)
                return nodeError(node, ErrorCode::InvalidInput, "'" + item.name + "' is no tensor",
                    "export the model anew");
            isComplex = isComplex || complex != nullptr;
            pairs.push_back(complex != nullptr ? *complex : AtenComplex{*id, {}});
            ids.push_back(pairs.back().real);
        }
        if (isComplex)
            return AtenValue(std::move(pairs));
        return AtenValue(std::move(ids));
    }
    if (const auto *numbers = std::get_if<std::vector<Pt2Number>>(&argument)) {
        std::vector<std::int64_t> integers;
        std::vector<double> reals;
        for (const Pt2Number &number : *numbers) {
            AtenValue value;
            if (const auto *named = std::get_if<Pt2Symbol>(&number)) {
                TRY(value, valueOf(named->name, node));
            } else if (const auto *integer = std::get_if<std::int64_t>(&number)) {
                value = *integer;
            } else {
                value = std::get<double>(number);
            }
            if (const auto *integer = std::get_if<std::int64_t>(&value)) {
                integers.push_back(*integer);
                reals.push_back(static_cast<double>(*integer));
            } else if (const auto *real = std::get_if<double>(&value)) {
                reals.push_back(*real);
            } else {
                return nodeError(node, ErrorCode::NotSupported,
                    "a size depends on values that are not known before a run",
                    "export the model with static shapes");
            }
        }
        if (integers.size() == reals.size())
            return AtenValue(std::move(integers));
        return AtenValue(std::move(reals));
    }
    if (const auto *unreadable = std::get_if<Pt2Unreadable>(&argument)) {
        // Devices, layouts and memory formats do not change what is computed.
        static const std::set<std::string_view> kIgnored = {"device", "layout", "memory_format"};
        if (kIgnored.count(unreadable->kind) != 0)
            return AtenValue();
        return nodeError(node, ErrorCode::NotSupported,
            "it takes an argument of kind '" + unreadable->kind + "', which Planloom cannot read",
            "write the module without it");
    }
    return std::visit(
        [](const auto &value) -> Result<AtenValue> {
            using Value = std::decay_t<decltype(value)>;
            constexpr bool isPlain =
                std::is_same_v<Value,
                    std::
                        int64_t> || std::is_same_v<Value, double> || std::is_same_v<Value, bool> || std::is_same_v<Value, std::string> || std::is_same_v<Value, Pt2DataType> || std::is_same_v<Value, std::complex<double>>;
            if constexpr (isPlain)
                return AtenValue(value);
            else
                return AtenValue();
        },
        argument);
}

Result<void> Pt2NodeImporter::setOnce(const std::string &name, AtenValue value, const Pt2Node &node)
{
    if (m_frame->find(name) != nullptr)
        return nodeError(
            node, ErrorCode::InvalidInput, "the value '" + name + "' is made twice", "export the model anew");
    m_frame->set(name, std::move(value));
    return {};
}

Result<std::vector<AtenValue>> Pt2NodeImporter::run(Pt2Frame &frame)
{
    if (m_depth >= kDeepestGraph)
        return Error{ErrorCode::ResourceLimit,
            "graphs lie in one another deeper than " + std::to_string(kDeepestGraph), {}, m_where};
    struct Restore {
        Pt2Frame *&current;
        std::size_t &position;
        int &depth;
        Pt2Frame *outer;
        std::size_t at;
        ~Restore()
        {
            current = outer;
            position = at;
            --depth;
        }
    } const restore{m_frame, m_position, m_depth, m_frame, m_position};
    ++m_depth;
    m_frame = &frame;
    const Pt2Graph &graph = frame.graph();
    for (std::size_t position = 0; position < graph.nodes.size(); ++position) {
        m_position = position;
        if ((++m_nodes & 0xff) == 0 && m_writer.options().stop.stop_requested())
            return Error{ErrorCode::Cancelled, "the import was cancelled", {}, m_where};
        if (m_nodes > m_writer.options().mostOperators)
            return Error{ErrorCode::ResourceLimit,
                "the program has more than " + std::to_string(m_writer.options().mostOperators) + " nodes",
                {}, m_where};
        const Pt2Node &node = graph.nodes[position];
        if (m_writer.options().look && m_writer.areOpaque(tensorsOf(node))) {
            keepOpaque(node, nullptr);
            continue;
        }
        const auto imported = importNode(node);
        if (!imported && !m_writer.maySkip(imported.error()))
            return imported.error();
        if (!imported)
            keepOpaque(node, &imported.error());
    }
    std::vector<AtenValue> outputs;
    Pt2Node end;
    end.name = "output";
    end.target = "output";
    for (const Pt2Argument &output : graph.outputs) {
        // New values of buffers need not be there: see collectOutputs of the importer.
        const auto *tensor = std::get_if<Pt2Tensor>(&output);
        if (tensor != nullptr && frame.find(tensor->name) == nullptr) {
            outputs.emplace_back();
            continue;
        }
        TRY(AtenValue value, resolve(output, end));
        outputs.push_back(std::move(value));
    }
    return outputs;
}

/// The tensors that a node reads, as far as they are there.
std::vector<TensorId> Pt2NodeImporter::tensorsOf(const Pt2Node &node) const
{
    std::vector<TensorId> tensors;
    const auto add = [&](const Pt2Tensor &tensor) {
        const AtenValue *value = m_frame->find(tensor.name);
        if (const auto *id = value == nullptr ? nullptr : std::get_if<TensorId>(value))
            tensors.push_back(*id);
    };
    for (const Pt2NamedArgument &input : node.inputs) {
        if (const auto *tensor = std::get_if<Pt2Tensor>(&input.value))
            add(*tensor);
        if (const auto *list = std::get_if<std::vector<Pt2Tensor>>(&input.value))
            std::for_each(list->begin(), list->end(), add);
    }
    return tensors;
}

/// Keeps a node to be looked at: see `NodeWriter::keepOpaque`.
void Pt2NodeImporter::keepOpaque(const Pt2Node &node, const Error *why)
{
    std::vector<std::string> results;
    for (const std::string &result : pt2ResultsOf(node)) {
        if (!result.empty() && m_frame->find(result) == nullptr)
            results.push_back(result);
    }
    writerOf(node, std::move(results)).keepOpaque(tensorsOf(node), why);
}

NodeWriter Pt2NodeImporter::writerOf(const Pt2Node &node, std::vector<std::string> results)
{
    return {m_writer, *this, SourceNode{pt2PathOf(node, m_modules), pt2ShortTarget(node.target)},
        std::move(results)};
}

Result<void> Pt2NodeImporter::importNode(const Pt2Node &node)
{
    TRY(const bool isNumber, importNumber(node));
    if (isNumber)
        return {};
    const std::string target = pt2ShortTarget(node.target);
    if (target.compare(0, 13, "higher_order.") == 0)
        return importInner(node, target);
    return importAten(node, target);
}

/// Nodes that make numbers: sizes, and what is computed from them. @return false for other nodes
Result<bool> Pt2NodeImporter::importNumber(const Pt2Node &node)
{
    const std::string target = pt2ShortTarget(node.target);
    const bool arithmetic = isPt2Arithmetic(target);
    const bool size = target == "aten.sym_size.int" || target == "aten.sym_numel.default";
    const bool item = target == "aten.item.default" || target == "aten._local_scalar_dense.default";
    if (!arithmetic && !size && !item)
        return false;
    std::vector<AtenValue> arguments;
    for (const Pt2NamedArgument &input : node.inputs) {
        TRY(AtenValue value, resolve(input.value, node));
        arguments.push_back(std::move(value));
    }
    const bool chosen = size ? hasChosenRows(node, arguments) : readsChosenSize(node);
    std::optional<AtenValue> result;
    if (arithmetic) {
        result = computePt2Number(target, arguments);
    } else if (const auto *tensor = arguments.empty() ? nullptr : std::get_if<TensorId>(&arguments[0])) {
        const Shape &shape = m_writer.typeOf(*tensor).shape;
        const auto *axis = arguments.size() < 2 ? nullptr : std::get_if<std::int64_t>(&arguments[1]);
        const auto rank = static_cast<std::int64_t>(shape.size());
        if (item)
            result = itemOf(m_writer.valuesOf(*tensor));
        else if (target == "aten.sym_numel.default")
            result = AtenValue(elementCount(shape));
        else if (axis != nullptr && *axis >= -rank && *axis < rank)
            result = AtenValue(shape[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)]);
    }
    if (!result && item)
        return nodeError(node, ErrorCode::NotSupported,
            "it takes a number out of a tensor whose values are not known before a run",
            "write the module without it: keep the value in a tensor, or make it a constant");
    if (!result)
        return nodeError(node, ErrorCode::NotSupported,
            "it computes with a size in a way that Planloom does not know",
            "export the model with static shapes");
    if (node.outputs.empty())
        return true;
    const auto *symbol = std::get_if<Pt2Symbol>(&node.outputs.front());
    const std::string &name = symbol != nullptr ? symbol->name : node.name;
    if (chosen && !std::holds_alternative<bool>(*result))
        m_chosenSizes.insert(name);
    TRY_VOID(setOnce(name, *std::move(result), node));
    return true;
}

/// True if the size that the node asks for is one that data choose.
bool Pt2NodeImporter::hasChosenRows(const Pt2Node &node, const std::vector<AtenValue> &arguments) const
{
    const auto *tensor = arguments.empty() ? nullptr : std::get_if<TensorId>(&arguments[0]);
    const ChosenRows *rows = tensor == nullptr ? nullptr : m_writer.chosen().rows(*tensor);
    if (rows == nullptr)
        return false;
    const auto *axis = arguments.size() < 2 ? nullptr : std::get_if<std::int64_t>(&arguments[1]);
    const auto rank = static_cast<std::int64_t>(m_writer.typeOf(*tensor).shape.size());
    return axis == nullptr || pt2ShortTarget(node.target) == "aten.sym_numel.default"
        || static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis) == rows->dimension;
}

/// True if a number among the node's arguments comes from a size that data choose; sizes in lists are shapes.
bool Pt2NodeImporter::readsChosenSize(const Pt2Node &node) const
{
    return std::any_of(node.inputs.begin(), node.inputs.end(), [this](const Pt2NamedArgument &input) {
        const auto *symbol = std::get_if<Pt2Symbol>(&input.value);
        return symbol != nullptr && m_chosenSizes.count(symbol->name) != 0;
    });
}

/// True if a call of `as_strided` reads all elements of a tensor in the order in which they lie: a view of
/// another shape.
bool Pt2NodeImporter::keepsOrder(const Pt2Node &node, const std::map<std::string, AtenValue> &arguments) const
{
    const auto *input = node.inputs.empty() ? nullptr : std::get_if<Pt2Tensor>(&node.inputs.front().value);
    const auto meta =
        input == nullptr ? m_frame->graph().tensors.end() : m_frame->graph().tensors.find(input->name);
    const auto listOf = [&](const char *name) {
        const auto found = arguments.find(name);
        return found == arguments.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&found->second);
    };
    const auto *size = listOf("size");
    const auto *stride = listOf("stride");
    const auto offset = arguments.find("storage_offset");
    const auto *begin = offset == arguments.end() ? nullptr : std::get_if<std::int64_t>(&offset->second);
    if (meta == m_frame->graph().tensors.end() || size == nullptr || stride == nullptr
        || size->size() != stride->size() || (begin != nullptr && *begin != 0))
        return false;
    const auto type = declaredType(meta->second);
    std::vector<std::int64_t> own;
    for (const Pt2Size &each : meta->second.strides)
        own.push_back(each.value.value_or(-1));
    const bool begins = meta->second.storageOffset.value == std::optional<std::int64_t>(0);
    return type && begins && own.size() == type->shape.size() && isRowMajor(type->shape, own)
        && isRowMajor(*size, *stride) && elementCount(*size) == elementCount(type->shape);
}

Result<void> Pt2NodeImporter::importAten(const Pt2Node &node, const std::string &target)
{
    const std::string space = target.substr(0, target.find('.'));
    const std::size_t begin = std::min(space.size() + 1, target.size());
    const std::string name = target.substr(begin, target.find('.', begin) - begin);
    static const std::set<std::string, std::less<>> kTakesSizes = {"arange", "_assert_scalar", "expand",
        "sym_constrain_range", "sym_constrain_range_for_size", "_check_is_size"};
    if (readsChosenSize(node) && kTakesSizes.count(name) == 0)
        return nodeError(node, ErrorCode::NotSupported,
            "it computes with how many rows data choose, which is not known before a run",
            "sum over a mask to count them");
    if (space == "aten" && writesInPlace(name))
        return writeInPlace(node, target, name.substr(0, name.size() - 1));
    std::map<std::string, AtenValue> arguments;
    for (const Pt2NamedArgument &input : node.inputs) {
        TRY(AtenValue value, resolve(input.value, node));
        arguments.emplace(input.name, std::move(value));
    }
    const auto results = pt2ResultsOf(node);
    for (const std::string &result : results) {
        if (!result.empty() && m_frame->find(result) != nullptr)
            return nodeError(node, ErrorCode::InvalidInput, "the value '" + result + "' is made twice",
                "export the model anew");
    }
    // What transformers calls where PyTorch has no kernel of its own.
    const bool grouped = space == "transformers" && name == "grouped_mm_fallback";
    // Core ATen pools to one place by it.
    const bool isView = space == "aten" && name == "as_strided" && keepsOrder(node, arguments);
    const std::string known = grouped ? "_grouped_mm"
        : isView                      ? "view"
        : space == "aten"             ? name
                                      : std::string();
    TRY_VOID(call(node, target, known, std::move(arguments), results));
    if (space == "aten")
        noteViews(node, name, results);
    return {};
}

/// "mylib.swish.default" is mylib::swish in an operator file.
std::shared_ptr<const OperatorDefinition> Pt2NodeImporter::definitionOf(const std::string &target) const
{
    const auto &files = m_writer.options().operators;
    const std::size_t first = target.find('.');
    if (!files || first == std::string::npos)
        return nullptr;
    const std::size_t second = target.find('.', first + 1);
    return files->find(
        target.substr(0, first), target.substr(first + 1, second - std::min(second, first + 1)));
}

Result<void> Pt2NodeImporter::call(const Pt2Node &node, const std::string &target, const std::string &name,
    AtenArguments arguments, const std::vector<std::string> &results)
{
    std::vector<TensorId> inputs;
    for (const Pt2NamedArgument &input : node.inputs) {
        if (const auto found = arguments.find(input.name); found != arguments.end()) {
            const auto tensors = tensorsAmong({*found});
            inputs.insert(inputs.end(), tensors.begin(), tensors.end());
        }
    }
    NodeWriter writer(m_writer, *this, SourceNode{pt2PathOf(node, m_modules), target}, results);
    AtenContext aten(name, std::move(arguments), std::move(inputs), writer);
    const bool isComplex = aten.isComplex();
    const AtenHandler handler = name.empty() ? nullptr
        : isComplex                          ? findAtenComplex(name)
                                             : findAtenHandler(name);
    if (const auto definition = definitionOf(target))
        TRY_VOID(aten.makeDefined(definition));
    else if (handler == nullptr && isComplex)
        return nodeError(node, ErrorCode::NotSupported, "it is not computed of complex numbers",
            "write this step with real numbers: torch.view_as_real(z) has them as pairs, and "
            "torch.view_as_complex takes pairs back");
    else if (handler == nullptr)
        TRY_VOID(aten.keepUnknown("Planloom does not know the operator " + target));
    else
        TRY_VOID(handler(aten));
    for (const auto &[slot, value] : aten.complexResults()) {
        if (slot < results.size() && !results[slot].empty())
            m_frame->set(results[slot], value);
    }
    return checkDeclared(node, results);
}

/// What was made must be what PyTorch's own tracing found: else the operator was misread.
Result<void> Pt2NodeImporter::checkDeclared(const Pt2Node &node, const std::vector<std::string> &results)
{
    const auto check = [&](TensorId id, const TensorType &type) -> Result<void> {
        const TensorType &found = m_writer.typeOf(id);
        if (found == type)
            return {};
        return nodeError(node, ErrorCode::NotSupported,
            "Planloom would make " + std::string(nameOf(found.dataType)) + toString(found.shape)
                + " of it, where the program declares " + nameOf(type.dataType) + toString(type.shape),
            "export the model to ONNX (torch.onnx.export) instead");
    };
    for (const std::string &result : results) {
        const AtenValue *value = m_frame->find(result);
        const auto meta = m_frame->graph().tensors.find(result);
        if (value == nullptr || meta == m_frame->graph().tensors.end())
            continue;
        if (const auto *id = std::get_if<TensorId>(value)) {
            if (const auto type = declaredType(meta->second))
                TRY_VOID(check(*id, *type));
        } else if (const auto *complex = std::get_if<AtenComplex>(value)) {
            if (!meta->second.partType)
                return nodeError(node, ErrorCode::InvalidInput,
                    "it makes complex numbers, where the program declares " + meta->second.typeName,
                    "export the model anew");
            Pt2Meta part = meta->second;
            part.dataType = part.partType;
            const auto type = declaredType(part);
            for (const TensorId id : {complex->real, complex->imaginary}) {
                if (type)
                    TRY_VOID(check(id, *type));
            }
        }
    }
    return {};
}

void Pt2NodeImporter::noteViews(
    const Pt2Node &node, const std::string &name, const std::vector<std::string> &results)
{
    if (!isAtenView(name) || node.inputs.empty())
        return;
    const auto *base = std::get_if<Pt2Tensor>(&node.inputs.front().value);
    for (const std::string &result : results) {
        if (base != nullptr && !result.empty())
            m_frame->addView(result, base->name, node);
    }
}

/// @return NotSupported if others than what `written` is a part of share its memory and are read later
Result<void> Pt2NodeImporter::checkSharing(const Pt2Node &node, const std::string &written) const
{
    std::set<std::string> parents;
    for (const auto *view = m_frame->viewOf(written); view != nullptr; view = m_frame->viewOf(view->base))
        parents.insert(view->base);
    for (const std::string &other : m_frame->sharing(written)) {
        if (other != written && parents.count(other) == 0 && m_frame->isUsedBehind(other, m_position))
            return nodeError(node, ErrorCode::NotSupported,
                "it writes into the memory of '" + other + "', which is read afterwards", kFunctional);
    }
    return {};
}

/// What is written into a tensor is what its name means from then on, and what the tensors mean of which it
/// is a part. Others that share its memory must not be read any more.
Result<void> Pt2NodeImporter::writeInPlace(
    const Pt2Node &node, const std::string &target, const std::string &name)
{
    const auto *written = node.inputs.empty() ? nullptr : std::get_if<Pt2Tensor>(&node.inputs.front().value);
    const auto results = pt2ResultsOf(node);
    if (written == nullptr || results.size() > 1)
        return nodeError(
            node, ErrorCode::NotSupported, "it writes in place in a way that is not known", kFunctional);
    std::map<std::string, AtenValue> arguments;
    for (const Pt2NamedArgument &input : node.inputs) {
        TRY(AtenValue value, resolve(input.value, node));
        arguments.emplace(input.name, std::move(value));
    }
    TRY_VOID(checkSharing(node, written->name));
    std::vector<std::string> made = results;
    if (made.empty() || made.front().empty())
        made = {node.name};
    if (m_frame->find(made.front()) != nullptr)
        return nodeError(node, ErrorCode::InvalidInput, "the value '" + made.front() + "' is made twice",
            "export the model anew");
    TRY_VOID(call(node, target, name, std::move(arguments), made));
    const AtenValue *result = m_frame->find(made.front());
    if (result == nullptr)
        return {};
    if (const AtenValue *before = m_frame->find(written->name)) {
        if (const auto *id = std::get_if<TensorId>(before))
            noteChanged(*id, written->name);
    }
    m_frame->set(written->name, *result);
    m_frame->addView(made.front(), written->name, node);
    const auto *view = m_frame->viewOf(written->name);
    return view == nullptr ? Result<void>{} : writeIntoBase(node, *view, written->name);
}

/// Puts a part that was written into back in its place in what it is a part of.
Result<void> Pt2NodeImporter::writeIntoBase(
    const Pt2Node &node, const Pt2Frame::View &view, const std::string &part)
{
    bool isRead = false;
    std::string base = view.base;
    for (const auto *outer = &view; outer != nullptr; outer = m_frame->viewOf(outer->base))
        isRead = isRead || m_frame->isUsedBehind(outer->base, m_position);
    if (!isRead)
        return {};
    const std::string target = pt2ShortTarget(view.node->target);
    std::map<std::string, AtenValue> arguments;
    for (const Pt2NamedArgument &input : view.node->inputs) {
        TRY(AtenValue value, resolve(input.value, *view.node));
        arguments.emplace(input.name, std::move(value));
    }
    TRY(AtenValue value, valueOf(part, node));
    std::string name;
    if (target == "aten.slice.Tensor") {
        name = "slice_scatter";
        arguments["src"] = std::move(value);
    } else if (target == "aten.select.int") {
        name = "select_scatter";
        arguments["src"] = std::move(value);
    } else if (writesInPlace(target.substr(5, target.find('.', 5) - 5))
        || target.substr(0, 11) == "aten.alias." || target.substr(0, 12) == "aten.detach.") {
        const AtenValue *held = m_frame->find(base);
        const auto *before = held == nullptr ? nullptr : std::get_if<TensorId>(held);
        if (const auto *after = std::get_if<TensorId>(&value); before != nullptr && after != nullptr) {
            noteChanged(*before, base);
            if (target.substr(0, 12) == "aten.detach.") {
                TRY(value, writtenAside(node, *before, *after));
            }
        }
        m_frame->set(base, std::move(value));
    } else {
        return nodeError(node, ErrorCode::NotSupported,
            "it writes into the memory of '" + base + "' through " + target, kFunctional);
    }
    if (!name.empty()) {
        // A value of its own, which then is what the base's name means.
        const std::string fresh = node.name + "." + base;
        TRY_VOID(call(node, target, name, std::move(arguments), {fresh}));
        const AtenValue *result = m_frame->find(fresh);
        if (result != nullptr)
            m_frame->set(base, AtenValue(*result));
    }
    const auto *outer = m_frame->viewOf(base);
    return outer == nullptr ? Result<void>{} : writeIntoBase(node, *outer, base);
}

} // namespace planloom
