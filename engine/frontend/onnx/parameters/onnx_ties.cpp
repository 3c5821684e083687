#include "engine/frontend/onnx/parameters/onnx_ties.h"

#include "engine/frontend/onnx/parameters/folded_steps.h"
#include "engine/frontend/onnx/parameters/onnx_folded.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostRestored = std::int64_t{1} << 24; ///< Elements of biases that were left out.

constexpr std::int64_t kLeastCopied = 64; ///< Elements whose being equal is no accident.

/// Where the parameters that are nowhere in the file belong: their names by module.
std::map<std::string_view, std::vector<std::string_view>> missingParameters(const OnnxGraph &graph)
{
    std::set<std::string_view> present;
    for (const StoredTensor &tensor : graph.initializers)
        present.insert(tensor.name);
    for (const OnnxValue &input : graph.inputs)
        present.insert(input.name);
    for (const auto &[name, provenance] : graph.provenance)
        present.insert(provenance.foldedFrom.begin(), provenance.foldedFrom.end());
    std::map<std::string_view, std::vector<std::string_view>> missing;
    for (const auto &[name, kind] : graph.signature) {
        const std::size_t dot = name.rfind('.');
        if (kind == OnnxSpecKind::Parameter && dot != std::string::npos && present.count(name) == 0)
            missing[std::string_view(name).substr(0, dot)].push_back(name);
    }
    return missing;
}

std::string_view lastPartOf(std::string_view name)
{
    return name.substr(name.rfind('.') + 1);
}

/// The one of a module's missing parameters that a reading of `read` means; empty if that is not clear.
std::string_view meantBy(std::string_view read, const std::vector<std::string_view> &missing)
{
    for (const std::string_view name : missing) {
        if (lastPartOf(name) == lastPartOf(read))
            return name;
    }
    return missing.size() == 1 ? missing.front() : std::string_view{};
}

/// True if all elements are the same number.
bool isUniformData(const TensorData &data)
{
    const auto size = static_cast<std::size_t>(sizeOf(data.type.dataType));
    return data.bytes.size() <= size
        || std::memcmp(data.bytes.data(), data.bytes.data() + size, data.bytes.size() - size) == 0;
}

/// True if `b` is the matrix `a` transposed.
bool isTransposed(const TensorData &a, const TensorData &b)
{
    const Shape &shape = a.type.shape;
    if (shape.size() != 2 || b.type.dataType != a.type.dataType || b.type.shape != Shape{shape[1], shape[0]})
        return false;
    const auto size = static_cast<std::size_t>(sizeOf(a.type.dataType));
    const auto rows = static_cast<std::size_t>(shape[0]);
    const auto columns = static_cast<std::size_t>(shape[1]);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            if (std::memcmp(
                    a.bytes.data() + (r * columns + c) * size, b.bytes.data() + (c * rows + r) * size, size)
                != 0)
                return false;
        }
    }
    return true;
}

/// Who holds the values that a folded initializer was made from.
class CopyFinder
{
public:
    explicit CopyFinder(const OnnxGraph &graph)
        : m_graph(graph)
    {
        for (const StoredTensor &tensor : graph.initializers) {
            const auto found = graph.provenance.find(tensor.name);
            const bool said =
                found != graph.provenance.end() && found->second.kind == OnnxSpecKind::Parameter;
            if (said || (graph.signature.empty() && isDotted(tensor.name)))
                m_stored.push_back(&tensor);
        }
    }

    /// The parameter that `tensor` is a copy of, if the metadata say so and it is known well enough to be
    /// compared; empty otherwise.
    std::string_view sourceOf(const StoredTensor &tensor) const
    {
        const auto found = m_graph.provenance.find(tensor.name);
        if (found == m_graph.provenance.end() || found->second.kind || found->second.foldedFrom.size() != 1
            || tensor.type.shape.size() < 2)
            return {};
        const std::string &source = found->second.foldedFrom.front();
        return parametersAmong(m_graph, found->second.foldedFrom).empty() ? std::string_view{} : source;
    }

    /// True if the values of `tensor` alone may say that it is a transposed copy.
    bool mayBeCopy(const StoredTensor &tensor) const
    {
        return m_graph.signature.empty() && m_graph.provenance.count(tensor.name) == 0
            && tensor.type.shape.size() == 2 && isFloating(tensor.type.dataType) && !isDotted(tensor.name)
            && elementCount(tensor.type.shape) >= kLeastCopied;
    }

    /// An earlier initializer with the same values from the same source, or null; remembers `tensor` if not.
    const StoredTensor *equalTo(const StoredTensor &tensor, std::string_view source)
    {
        std::vector<const StoredTensor *> &seen = m_folded[source];
        for (const StoredTensor *other : seen) {
            if (other->type != tensor.type)
                continue;
            const TensorData *theirs = valuesOf(*other);
            const TensorData *own = valuesOf(tensor);
            if (theirs != nullptr && own != nullptr && theirs->bytes == own->bytes && !isUniformData(*own))
                return other;
        }
        seen.push_back(&tensor);
        return nullptr;
    }

    /// The parameter of the file that `tensor` is the transpose of, or null.
    const StoredTensor *transposedOf(const StoredTensor &tensor)
    {
        const Shape turned(tensor.type.shape.rbegin(), tensor.type.shape.rend());
        const auto found = std::find_if(m_stored.begin(), m_stored.end(), [&](const StoredTensor *stored) {
            if (stored->type.shape != turned)
                return false;
            const TensorData *theirs = valuesOf(*stored);
            const TensorData *own = valuesOf(tensor);
            return theirs != nullptr && own != nullptr && isTransposed(*theirs, *own) && !isUniformData(*own);
        });
        return found == m_stored.end() ? nullptr : *found;
    }

private:
    /// Values that are compared; null if they are not at hand.
    const TensorData *valuesOf(const StoredTensor &tensor)
    {
        if (tensor.data)
            return tensor.data.get();
        const auto [known, isNew] = m_read.emplace(&tensor, nullptr);
        if (isNew)
            known->second = valuesOfFolded(tensor);
        return known->second.get();
    }

    const OnnxGraph &m_graph;
    std::map<const StoredTensor *, std::shared_ptr<const TensorData>> m_read{}; ///< From beside the file.
    std::vector<const StoredTensor *> m_stored{}; ///< Parameters that are in the file as they are.
    std::map<std::string_view, std::vector<const StoredTensor *>> m_folded{}; ///< By source.
};

} // namespace

std::map<std::string, std::vector<std::string>> untieMerged(OnnxGraph &graph)
{
    std::map<std::string, std::vector<std::string>> untied;
    const auto missing = missingParameters(graph);
    if (missing.empty())
        return untied;
    std::map<std::string, const StoredTensor *, std::less<>> merged;
    for (const StoredTensor &tensor : graph.initializers) {
        const auto found = graph.provenance.find(tensor.name);
        std::int64_t elements = 1;
        for (const std::int64_t extent : tensor.type.shape)
            elements = std::min(elements * extent, kMostMerged + 1);
        if (found != graph.provenance.end() && found->second.kind == OnnxSpecKind::Parameter
            && elements <= kMostMerged)
            merged.emplace(tensor.name, &tensor);
    }
    std::map<std::string, StoredTensor> copies; // by name
    for (OnnxNode &node : graph.nodes) {
        if (!node.modules || node.modules->empty())
            continue;
        const std::string &module = node.modules->back();
        const auto own = missing.find(module);
        if (own == missing.end())
            continue;
        for (std::string &input : node.inputs) {
            const auto found = merged.find(input);
            if (found == merged.end() || input.substr(0, std::min(input.rfind('.'), input.size())) == module)
                continue;
            const std::string name(meantBy(input, own->second));
            if (name.empty())
                continue;
            const auto [copy, isNew] = copies.emplace(name, *found->second);
            if (isNew) {
                copy->second.name = name;
                untied[input].push_back(name);
            } else if (copy->second.data != found->second->data) {
                continue; // two values for one parameter: the file contradicts itself
            }
            input = name;
        }
    }
    for (auto &[name, copy] : copies) {
        graph.provenance[name].kind = OnnxSpecKind::Parameter;
        graph.initializers.push_back(std::move(copy));
    }
    return untied;
}

std::int64_t tieCopies(OnnxGraph &graph)
{
    CopyFinder finder(graph);
    std::unordered_map<std::string, std::string> same; // copy -> what is read in its place
    std::vector<OnnxNode> transposes;
    for (const StoredTensor &tensor : graph.initializers) {
        const std::string_view source = finder.sourceOf(tensor);
        if (source.empty() && !finder.mayBeCopy(tensor))
            continue;
        if (const StoredTensor *first = source.empty() ? nullptr : finder.equalTo(tensor, source)) {
            same.emplace(tensor.name, first->name);
        } else if (const StoredTensor *stored = finder.transposedOf(tensor)) {
            OnnxNode node;
            node.name = tensor.name;
            node.type = "Transpose";
            node.inputs = {stored->name};
            node.outputs = {tensor.name};
            node.attributes.emplace("perm", std::vector<std::int64_t>{1, 0});
            transposes.push_back(std::move(node));
        }
    }
    std::set<std::string> gone;
    for (const OnnxNode &node : transposes)
        gone.insert(node.outputs.front());
    for (const auto &[copy, kept] : same)
        gone.insert(copy);
    if (gone.empty())
        return 0;
    for (OnnxNode &node : graph.nodes) {
        for (std::string &input : node.inputs) {
            if (const auto found = same.find(input); found != same.end())
                input = found->second;
        }
    }
    std::erase_if(
        graph.initializers, [&](const StoredTensor &tensor) { return gone.count(tensor.name) != 0; });
    std::move(transposes.begin(), transposes.end(), std::back_inserter(graph.nodes));
    return static_cast<std::int64_t>(gone.size());
}

std::vector<std::string> restoreZeroBiases(OnnxGraph &graph)
{
    std::vector<std::string> restored;
    const auto missing = missingParameters(graph);
    std::unordered_map<std::string_view, TensorType> stored;
    for (const StoredTensor &tensor : graph.initializers)
        stored.emplace(tensor.name, tensor.type);
    std::vector<StoredTensor> biases;
    std::set<std::string> taken;
    std::int64_t left = kMostRestored;
    for (OnnxNode &node : graph.nodes) {
        const bool isProduct = node.domain.empty() && (node.type == "Gemm" || node.type == "Conv");
        if (!isProduct || node.inputs.size() != 2 || !node.modules || node.modules->empty())
            continue;
        const auto weight = stored.find(node.inputs[1]);
        const std::string name = node.modules->back() + ".bias";
        const auto own = missing.find(node.modules->back());
        if (weight == stored.end() || weight->second.shape.size() < 2 || own == missing.end()
            || std::find(own->second.begin(), own->second.end(), name) == own->second.end()
            || taken.count(name) != 0)
            continue;
        const auto transposed = node.attributes.find("transB");
        const auto *flag =
            transposed == node.attributes.end() ? nullptr : std::get_if<std::int64_t>(&transposed->second);
        const bool outputsFirst = node.type == "Conv" || (flag != nullptr && *flag != 0);
        const TensorType type{weight->second.dataType, {weight->second.shape[outputsFirst ? 0 : 1]}};
        if (type.shape[0] > left)
            continue;
        left -= type.shape[0];
        taken.insert(name);
        auto zeros = std::make_shared<TensorData>();
        zeros->type = type;
        zeros->bytes.resize(static_cast<std::size_t>(elementCount(type.shape))
            * static_cast<std::size_t>(sizeOf(type.dataType)));
        StoredTensor bias;
        bias.name = name;
        bias.type = type;
        bias.data = std::move(zeros);
        biases.push_back(std::move(bias));
        restored.push_back(name);
        node.inputs.push_back(name);
    }
    for (const std::string &name : restored)
        graph.provenance[name].kind = OnnxSpecKind::Parameter;
    std::move(biases.begin(), biases.end(), std::back_inserter(graph.initializers));
    return restored;
}

} // namespace planloom
