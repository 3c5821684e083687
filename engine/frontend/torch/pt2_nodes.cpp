#include "engine/frontend/torch/pt2_nodes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr int kDeepestGraph = 32; ///< Graphs in graphs.
constexpr const char *kFunctional =
    "save exported.run_decompositions({}) instead, which writes nothing in place";

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

Pt2NodeImporter::Pt2NodeImporter(GraphWriter &writer, Pt2SymbolLookup sizeOf, std::string where)
    : m_writer(writer)
    , m_sizeOf(std::move(sizeOf))
    , m_numbers(writer)
    , m_where(std::move(where))
{
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
        if (m_writer.options().look && m_writer.areOpaque(pt2Tensors(*m_frame, node))) {
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
        TRY(AtenValue value, pt2Argument(*m_frame, output, end));
        outputs.push_back(std::move(value));
    }
    return outputs;
}

/// Keeps a node to be looked at: see `NodeWriter::keepOpaque`.
void Pt2NodeImporter::keepOpaque(const Pt2Node &node, const Error *why)
{
    std::vector<std::string> results;
    for (const std::string &result : pt2ResultsOf(node)) {
        if (!result.empty() && m_frame->find(result) == nullptr)
            results.push_back(result);
    }
    writerOf(node, std::move(results)).keepOpaque(pt2Tensors(*m_frame, node), why);
}

NodeWriter Pt2NodeImporter::writerOf(const Pt2Node &node, std::vector<std::string> results)
{
    return {m_writer, *this, SourceNode{pt2PathOf(node, m_modules), pt2ShortTarget(node.target)},
        std::move(results)};
}

Result<void> Pt2NodeImporter::importNode(const Pt2Node &node)
{
    TRY(const bool isNumber, m_numbers.import(node, *m_frame));
    if (isNumber)
        return {};
    const std::string target = pt2ShortTarget(node.target);
    if (target.compare(0, 13, "higher_order.") == 0)
        return importInner(node, target);
    return importAten(node, target);
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
    if (m_numbers.readsChosenSize(node) && kTakesSizes.count(name) == 0)
        return pt2Error(node, ErrorCode::NotSupported,
            "it computes with how many rows data choose, which is not known before a run",
            "sum over a mask to count them");
    if (space == "aten" && writesInPlace(name))
        return writeInPlace(node, target, name.substr(0, name.size() - 1));
    TRY(AtenArguments arguments, pt2Arguments(*m_frame, node));
    const auto results = pt2ResultsOf(node);
    for (const std::string &result : results) {
        if (!result.empty() && m_frame->find(result) != nullptr)
            return pt2Error(node, ErrorCode::InvalidInput, "the value '" + result + "' is made twice",
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
        return pt2Error(node, ErrorCode::NotSupported, "it is not computed of complex numbers",
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
        return pt2Error(node, ErrorCode::NotSupported,
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
                return pt2Error(node, ErrorCode::InvalidInput,
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
            return pt2Error(node, ErrorCode::NotSupported,
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
        return pt2Error(
            node, ErrorCode::NotSupported, "it writes in place in a way that is not known", kFunctional);
    TRY(AtenArguments arguments, pt2Arguments(*m_frame, node));
    TRY_VOID(checkSharing(node, written->name));
    std::vector<std::string> made = results;
    if (made.empty() || made.front().empty())
        made = {node.name};
    if (m_frame->find(made.front()) != nullptr)
        return pt2Error(node, ErrorCode::InvalidInput, "the value '" + made.front() + "' is made twice",
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
    TRY(AtenArguments arguments, pt2Arguments(*m_frame, *view.node));
    TRY(AtenValue value, pt2Value(*m_frame, part, node));
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
        return pt2Error(node, ErrorCode::NotSupported,
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
