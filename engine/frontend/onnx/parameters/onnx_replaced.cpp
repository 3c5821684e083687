#include "engine/frontend/onnx/parameters/onnx_replaced.h"

#include "engine/base/words.h"
#include "engine/frontend/onnx/parameters/folded_steps.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

/// What became of the parameters and buffers of modules.
class ReplacedFinder
{
public:
    explicit ReplacedFinder(OnnxGraph &graph)
        : m_graph(graph)
    {
        for (const StoredTensor &tensor : graph.initializers) {
            m_stored.insert(tensor.name);
            const auto found = graph.provenance.find(tensor.name);
            m_saysKinds = m_saysKinds
                || (found != graph.provenance.end() && found->second.kind == OnnxSpecKind::Parameter);
        }
    }

    std::vector<std::string> run();

private:
    void findComputed();
    void findRewritten();
    bool isRewritten(const std::string &name, const std::string &module) const;
    std::vector<std::string> missingOf(const std::string &module) const;
    bool isParameter(const std::string &name) const { return !parametersAmong(m_graph, {name}).empty(); }

    OnnxGraph &m_graph;
    std::set<std::string_view> m_stored{};
    bool m_saysKinds = false; ///< Of some parameter the file says that it is one.
    std::vector<std::string> m_computed{};
    std::vector<std::string> m_norms{}; ///< Modules with statistics that went into weights.
    std::vector<std::string> m_rewritten{}; ///< Weights that were written anew for other reasons.
};

void ReplacedFinder::findComputed()
{
    for (const StoredTensor &tensor : m_graph.initializers) {
        const auto found = m_graph.provenance.find(tensor.name);
        if (found == m_graph.provenance.end() || found->second.kind || found->second.foldedFrom.empty()
            || !isFloating(tensor.type.dataType))
            continue;
        FoldedSteps steps = stepsOf(m_graph, tensor.name, found->second);
        if (steps.parameters.empty() || isMovedOnly(steps))
            continue;
        found->second.insteadOf = std::move(steps.parameters);
        m_computed.push_back(tensor.name);
    }
}

/// True if the optimizer of a graph gave a parameter's name, or that with an ending, to something else.
bool ReplacedFinder::isRewritten(const std::string &name, const std::string &module) const
{
    static const std::set<std::string_view> kEndings = {"_bias", "_scaled", "_offset", "_fused"};
    const auto said = m_graph.provenance.find(name);
    if (m_stored.count(name) == 0 || (said != m_graph.provenance.end() && said->second.kind))
        return false;
    const bool isElsewhere =
        !module.empty() && name.substr(0, std::min(name.rfind('.'), name.size())) != module;
    if (m_saysKinds && isElsewhere && isParameter(name) && m_graph.signature.count(name) != 0)
        return true;
    const std::size_t end = name.rfind('_');
    return end != std::string::npos && kEndings.count(std::string_view(name).substr(end)) != 0
        && name.substr(0, end).ends_with("weight") && m_graph.signature.count(name) == 0;
}

/// Parameters of a module that are nowhere in the file.
std::vector<std::string> ReplacedFinder::missingOf(const std::string &module) const
{
    std::vector<std::string> names;
    for (auto found = m_graph.signature.lower_bound(module + "."); found != m_graph.signature.end();
         ++found) {
        if (!found->first.starts_with(module + "."))
            break;
        const bool own = found->first.find('.', module.size() + 1) == std::string::npos;
        if (own && found->second == OnnxSpecKind::Parameter && m_stored.count(found->first) == 0)
            names.push_back(found->first);
    }
    return names;
}

void ReplacedFinder::findRewritten()
{
    for (const OnnxNode &node : m_graph.nodes) {
        static const std::set<std::string_view> kTypes = {"Conv", "ConvTranspose", "Gemm"};
        if (!node.domain.empty() || kTypes.count(node.type) == 0 || node.inputs.size() < 2)
            continue;
        const std::string &weight = node.inputs[1];
        const std::string bias = node.inputs.size() > 2 ? node.inputs[2] : std::string();
        const bool hasModule = node.modules && !node.modules->empty();
        const std::string module = hasModule ? node.modules->back() : std::string();
        const bool isNorm = hasModule && m_graph.signature.count(module + ".running_var") != 0
            && m_stored.count(module + ".running_var") == 0;
        if (!isNorm && !isRewritten(weight, module) && !isRewritten(bias, module))
            continue;
        std::set<std::string> lost;
        for (const std::string &name : {weight, bias}) {
            if (m_stored.count(name) == 0)
                continue;
            const OnnxProvenance &said = m_graph.provenance[name];
            const auto from = parametersAmong(m_graph, said.foldedFrom);
            lost.insert(from.begin(), from.end());
            if (m_graph.signature.empty() ? !isRewritten(name, module) : isParameter(name))
                lost.insert(name);
            for (const char *ending : {"_scaled", "_offset", "_fused"}) {
                if (name.ends_with(ending))
                    lost.insert(name.substr(0, name.rfind('_')));
            }
        }
        if (hasModule) {
            const auto missing = missingOf(module);
            lost.insert(missing.begin(), missing.end());
        }
        for (const std::string &name : {weight, bias}) {
            if (m_stored.count(name) == 0)
                continue;
            OnnxProvenance &said = m_graph.provenance[name];
            said.kind = OnnxSpecKind::Parameter;
            said.insteadOf.assign(lost.begin(), lost.end());
        }
        (isNorm ? m_norms : m_rewritten).push_back(isNorm ? module : weight);
    }
}

std::vector<std::string> ReplacedFinder::run()
{
    findComputed();
    findRewritten();
    std::vector<std::string> notes;
    const std::string advice = " (export with optimize=False to train them)";
    if (!m_norms.empty())
        notes.push_back("the exporter folded "
            + counted(static_cast<std::int64_t>(m_norms.size()), "batch normalisation")
            + " into the weights before " + (m_norms.size() == 1 ? "it" : "them") + " ("
            + namesInWords(m_norms)
            + "): parameters of both are lost, and what is trained in their place trains otherwise than in "
              "PyTorch"
            + advice);
    if (!m_rewritten.empty())
        notes.push_back("the exporter's optimizer rewrote weights with what follows or precedes them ("
            + namesInWords(m_rewritten) + "): they train otherwise than in PyTorch" + advice);
    if (!m_computed.empty()) {
        std::set<std::string> from;
        for (const std::string &name : m_computed) {
            const auto &lost = m_graph.provenance[name].insteadOf;
            from.insert(lost.begin(), lost.end());
        }
        notes.push_back("the exporter computed "
            + counted(static_cast<std::int64_t>(m_computed.size()), "tensor") + " ("
            + namesInWords(m_computed) + ") from parameters (" + namesInWords({from.begin(), from.end()})
            + "): these are lost, and what is trained in their place trains otherwise than in PyTorch"
            + advice);
    }
    return notes;
}

} // namespace

std::vector<std::string> findReplaced(OnnxGraph &graph)
{
    return ReplacedFinder(graph).run();
}

} // namespace planloom
