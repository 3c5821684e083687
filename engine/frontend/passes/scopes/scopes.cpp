#include "engine/frontend/passes/scopes/scopes.h"

#include "engine/base/ids.h"
#include "engine/frontend/passes/scopes/alikeness.h"
#include "engine/frontend/passes/scopes/structure_scopes.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace planloom {

namespace {

using Path = std::vector<std::string_view>;

/// Deepest nesting kept of a name; real models stay below 20.
constexpr std::size_t kMostParts = 64;

/// "/transformer/h.3/attn/Gemm" -> transformer, h.3, attn.
Path modulePath(std::string_view name)
{
    Path path;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t slash = name.find('/', begin);
        if (slash == std::string_view::npos || path.size() == kMostParts)
            return path;
        if (slash > begin)
            path.push_back(name.substr(begin, slash - begin));
        begin = slash + 1;
    }
}

/// Longest module path that all named sources share.
Path commonPath(const std::vector<SourceNode> &sources)
{
    Path common;
    bool first = true;
    for (const SourceNode &source : sources) {
        Path path = modulePath(source.name);
        if (first) {
            common = std::move(path);
            first = false;
            continue;
        }
        const auto [end, unused] = std::mismatch(common.begin(), common.end(), path.begin(), path.end());
        common.erase(end, common.end());
    }
    return common;
}

/// Scopes and operators' scopes straight from the names.
void scopesFromNames(Graph &graph)
{
    graph.scopes.assign(1, Scope{});
    std::map<std::pair<ScopeId, std::string_view>, ScopeId> known; // names live in the sources
    for (Operator &op : graph.operators) {
        if (op.direction != Direction::Forward)
            continue;
        op.scope = ScopeId{0};
        for (const std::string_view part : commonPath(op.sources)) {
            auto [found, inserted] = known.try_emplace({op.scope, part});
            if (inserted) {
                found->second = ScopeId{static_cast<std::int32_t>(graph.scopes.size())};
                graph.scopes.push_back({.name = std::string(part), .parent = op.scope});
            }
            op.scope = found->second;
        }
    }
}

/// A module of one operator, or of what one node became (a projection, a batch norm), is that operator: its
/// scope is dissolved into the outer one, whose contents then read as an expert writes them.
void dissolveSingles(Graph &graph)
{
    std::vector<std::int32_t> contents(graph.scopes.size()); // nodes and surviving inner scopes
    std::vector<bool> hasInner(graph.scopes.size());
    std::vector<const Operator *> last(graph.scopes.size());
    for (const Operator &op : graph.operators) {
        if (op.direction != Direction::Forward)
            continue;
        const Operator *&before = last[at(op.scope)];
        if (before == nullptr || before->sources != op.sources)
            ++contents[at(op.scope)];
        before = &op;
    }
    std::vector<bool> dissolved(graph.scopes.size());
    for (std::size_t i = graph.scopes.size(); i-- > 1;) { // inner scopes stand behind outer ones
        const std::size_t parent = at(graph.scopes[i].parent);
        dissolved[i] = contents[i] <= 1 && !hasInner[i];
        if (dissolved[i]) {
            contents[parent] += contents[i];
        } else {
            ++contents[parent];
            hasInner[parent] = true;
        }
    }
    std::vector<ScopeId> now(graph.scopes.size(), ScopeId{0});
    std::vector<Scope> scopes{Scope{}};
    for (std::size_t i = 1; i < graph.scopes.size(); ++i) {
        const ScopeId parent = now[at(graph.scopes[i].parent)];
        if (dissolved[i]) {
            now[i] = parent;
            continue;
        }
        now[i] = ScopeId{static_cast<std::int32_t>(scopes.size())};
        scopes.push_back({.name = std::move(graph.scopes[i].name), .parent = parent});
    }
    graph.scopes = std::move(scopes);
    for (Operator &op : graph.operators) {
        if (op.direction == Direction::Forward)
            op.scope = now[at(op.scope)];
    }
}

/// Backward operators lie where their forwards lie, optimizer ones where their weight is first used.
void placeTraining(Graph &graph)
{
    std::unordered_map<TensorId, ScopeId> firstUse;
    for (Operator &op : graph.operators) {
        if (op.direction == Direction::Forward) {
            for (const TensorId id : op.inputs)
                firstUse.try_emplace(id, op.scope);
        } else if (op.direction == Direction::Backward) {
            op.scope = graph.at(op.mirror).scope;
        } else {
            const auto found = op.inputs.empty() ? firstUse.end() : firstUse.find(op.inputs.front());
            op.scope = found == firstUse.end() ? ScopeId{0} : found->second;
        }
    }
}

struct SignatureHash {
    std::size_t operator()(const std::vector<std::int32_t> &signature) const noexcept
    {
        std::uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a over whole numbers
        for (const std::int32_t number : signature)
            hash = (hash ^ static_cast<std::uint32_t>(number)) * 0x100000001b3ULL;
        return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
};

/// The structure of one scope as numbers: equal exactly for copies.
class SignatureWriter
{
public:
    explicit SignatureWriter(const Graph &graph)
        : m_graph(graph)
        , m_alikeness(graph)
        , m_alike(graph.operators.size())
        , m_tensorNumber(graph.tensors.size())
        , m_tensorOwner(graph.tensors.size(), -1)
        , m_scopeNumber(graph.scopes.size())
        , m_scopeOwner(graph.scopes.size(), -1)
    {
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (graph.operators[i].direction == Direction::Forward)
                m_alike[i] = m_alikeness.of(graph.operators[i]);
        }
    }

    std::vector<std::int32_t> write(ScopeId scope, const std::vector<OperatorId> &members)
    {
        m_owner = scope.index;
        m_tensors = 0;
        m_scopes = 0;
        m_signature.clear();
        for (const OperatorId id : members) {
            const Operator &op = m_graph.at(id);
            m_signature.push_back(m_alike[static_cast<std::size_t>(id.index)]);
            writeScope(scope, op.scope);
            m_signature.push_back(static_cast<std::int32_t>(op.inputs.size()));
            for (const TensorId input : op.inputs)
                writeInput(input);
            for (const TensorId output : op.outputs) {
                if (output)
                    number(output);
            }
        }
        return m_signature;
    }

private:
    /// The inner scope as a number; at its first appearance also where it hangs.
    void writeScope(ScopeId root, ScopeId scope)
    {
        if (scope == root) {
            m_signature.push_back(-1);
            return;
        }
        if (m_scopeOwner[at(scope)] == m_owner) {
            m_signature.push_back(m_scopeNumber[at(scope)]);
            return;
        }
        m_signature.push_back(-2);
        writeScope(root, m_graph.at(scope).parent);
        m_scopeOwner[at(scope)] = m_owner;
        m_scopeNumber[at(scope)] = m_scopes++;
    }

    /// A tensor made inside or seen before as its number; one from outside also by its role and type.
    void writeInput(TensorId id)
    {
        if (!id) {
            m_signature.push_back(-1);
            return;
        }
        const auto index = static_cast<std::size_t>(id.index);
        if (m_tensorOwner[index] == m_owner) {
            m_signature.push_back(m_tensorNumber[index]);
            return;
        }
        const Tensor &tensor = m_graph.at(id);
        // The first of a stack of layers may read an input of the model where the others read activations.
        const TensorRole role = tensor.role == TensorRole::Input ? TensorRole::Activation : tensor.role;
        m_signature.push_back(-2 - static_cast<std::int32_t>(role));
        m_signature.push_back(m_alikeness.typeNumber(tensor.type));
        number(id);
    }

    void number(TensorId id)
    {
        const auto index = static_cast<std::size_t>(id.index);
        m_tensorOwner[index] = m_owner;
        m_tensorNumber[index] = m_tensors++;
    }

    const Graph &m_graph;
    Alikeness m_alikeness;
    std::vector<std::int32_t> m_alike; ///< By operator.
    // Numbers are local to the scope being written; an owner other than it marks a number as stale.
    std::vector<std::int32_t> m_tensorNumber;
    std::vector<std::int32_t> m_tensorOwner;
    std::vector<std::int32_t> m_scopeNumber;
    std::vector<std::int32_t> m_scopeOwner;
    std::int32_t m_owner = -1;
    std::int32_t m_tensors = 0;
    std::int32_t m_scopes = 0;
    std::vector<std::int32_t> m_signature{};
};

} // namespace

void buildScopes(Graph &graph)
{
    scopesFromNames(graph);
    if (graph.scopes.size() == 1)
        scopesFromStructure(graph);
    dissolveSingles(graph);
    placeTraining(graph);
    findCopies(graph);
}

void findCopies(Graph &graph)
{
    std::vector<std::vector<OperatorId>> members(graph.scopes.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward)
            continue;
        for (ScopeId scope = graph.operators[i].scope; scope && scope.index != 0;
             scope = graph.at(scope).parent)
            members[at(scope)].push_back(OperatorId{static_cast<std::int32_t>(i)});
    }
    struct Found {
        ScopeId first{};
        std::int32_t copyClass = -1;
    };
    SignatureWriter writer(graph);
    std::unordered_map<std::vector<std::int32_t>, Found, SignatureHash> known; // keys are compared whole
    std::vector<const Found *> foundBy(graph.scopes.size());
    for (std::size_t i = 0; i < graph.scopes.size(); ++i) {
        graph.scopes[i].copyClass = -1;
        if (i == 0 || members[i].empty())
            continue;
        const ScopeId scope{static_cast<std::int32_t>(i)};
        const auto [found, inserted] =
            known.try_emplace(writer.write(scope, members[i]), Found{.first = scope});
        foundBy[i] = &found->second;
        if (!inserted)
            found->second.copyClass = 0; // has a copy; numbered below
    }
    std::int32_t next = 0;
    for (std::size_t i = 1; i < graph.scopes.size(); ++i) {
        if (foundBy[i] == nullptr || foundBy[i]->copyClass < 0)
            continue;
        const auto first = at(foundBy[i]->first);
        graph.scopes[i].copyClass = first == i ? next++ : graph.scopes[first].copyClass;
    }
}

} // namespace planloom
