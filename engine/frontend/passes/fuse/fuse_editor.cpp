#include "engine/frontend/passes/fuse/fuse_editor.h"

#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace planloom {

namespace {

/// "/transformer/h.3/attn/Gemm" -> "transformer.h.3.attn."; empty without a module path. Ends in a dot, so
/// that one path is a prefix of another exactly if its module encloses the other's.
std::string modulePrefix(std::string_view name)
{
    std::string prefix;
    std::size_t begin = 0;
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', begin)) {
        if (slash > begin) {
            prefix += name.substr(begin, slash - begin);
            prefix += '.';
        }
        begin = slash + 1;
    }
    return prefix;
}

/// Longest module prefix that all sources share; it ends behind a whole part.
std::string commonPrefix(const std::vector<SourceNode> &sources)
{
    std::string common;
    bool first = true;
    for (const SourceNode &source : sources) {
        std::string prefix = modulePrefix(source.name);
        if (first) {
            common = std::move(prefix);
            first = false;
            continue;
        }
        std::size_t same = 0;
        while (same < common.size() && same < prefix.size() && common[same] == prefix[same])
            ++same;
        // Module names hold dots ("h.3"); comparing them with the dots of the path can only join deeper in a
        // part that is cut here, never across modules.
        while (same > 0 && common[same - 1] != '.')
            --same;
        common.resize(same);
    }
    return common;
}

} // namespace

FuseEditor::FuseEditor(Graph graph)
    : m_graph(std::move(graph))
    , m_alive(m_graph.operators.size(), true)
    , m_fused(m_graph.operators.size())
    , m_isOutput(m_graph.tensors.size())
    , m_maker(m_graph.tensors.size(), -1)
    , m_users(m_graph.tensors.size())
{
    for (const TensorId id : m_graph.outputs)
        m_isOutput[index(id)] = true;
    if (m_graph.loss)
        m_isOutput[index(m_graph.loss)] = true;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const auto position = static_cast<std::int32_t>(i);
        for (const TensorId id : m_graph.operators[i].outputs) {
            if (id)
                m_maker[index(id)] = position;
        }
        for (const TensorId id : m_graph.operators[i].inputs) {
            if (isTracked(id) && (m_users[index(id)].empty() || m_users[index(id)].back() != position))
                m_users[index(id)].push_back(position);
        }
    }
}

/// Users are kept for activations only: a constant may have thousands, and nobody asks.
bool FuseEditor::isTracked(TensorId id) const
{
    return id && m_graph.at(id).role == TensorRole::Activation;
}

std::size_t FuseEditor::positionOf(const Operator &op) const
{
    return static_cast<std::size_t>(&op - m_graph.operators.data());
}

const Operator *FuseEditor::maker(TensorId id) const
{
    return id && m_maker[index(id)] >= 0 ? &m_graph.operators[static_cast<std::size_t>(m_maker[index(id)])]
                                         : nullptr;
}

const Operator *FuseEditor::madeBy(TensorId id, OperatorKind kind) const
{
    const Operator *made = maker(id);
    return made != nullptr && made->kind == kind ? made : nullptr;
}

const Operator *FuseEditor::onlyUser(TensorId id) const
{
    if (!isTracked(id) || isModelOutput(id) || m_users[index(id)].size() != 1)
        return nullptr;
    const Operator *user = userAt(m_users[index(id)].front());
    return std::count(user->inputs.begin(), user->inputs.end(), id) == 1 ? user : nullptr;
}

std::vector<const Operator *> FuseEditor::users(TensorId id) const
{
    std::vector<const Operator *> found;
    if (!isTracked(id) || isModelOutput(id))
        return found;
    for (const std::int32_t number : m_users[index(id)])
        found.push_back(userAt(number));
    return found;
}

bool FuseEditor::usedOnlyBy(TensorId id, std::initializer_list<const Operator *> users) const
{
    if (!isTracked(id) || isModelOutput(id))
        return false;
    return std::all_of(m_users[index(id)].begin(), m_users[index(id)].end(), [&](std::int32_t position) {
        const Operator *user = userAt(position);
        return user != nullptr && std::find(users.begin(), users.end(), user) != users.end();
    });
}

std::optional<double> FuseEditor::constant(TensorId id) const
{
    if (!id)
        return std::nullopt;
    const Tensor &tensor = m_graph.at(id);
    if (tensor.role != TensorRole::Buffer || !tensor.data || elementCount(tensor.type.shape) != 1
        || static_cast<std::int64_t>(tensor.data->bytes.size()) < sizeOf(tensor.type.dataType))
        return std::nullopt;
    const DataType type = tensor.type.dataType;
    if (!isFloating(type) && type != DataType::Int64 && type != DataType::Int32)
        return std::nullopt;
    return readNumber(type, tensor.data->bytes.data(), 0).asReal();
}

bool FuseEditor::isConstant(TensorId id, double value) const
{
    const std::optional<double> found = constant(id);
    return found && std::abs(*found - value) <= 1e-5 * std::abs(value);
}

bool FuseEditor::isParameter(TensorId id) const
{
    return id && (m_graph.at(id).role == TensorRole::Weight || m_graph.at(id).role == TensorRole::Buffer);
}

void FuseEditor::remove(std::size_t position)
{
    m_alive[position] = false;
    const auto number = static_cast<std::int32_t>(position);
    for (const TensorId id : m_graph.operators[position].inputs) {
        if (!isTracked(id))
            continue;
        std::vector<std::int32_t> &users = m_users[index(id)];
        users.erase(std::remove(users.begin(), users.end(), number), users.end());
    }
    for (const TensorId id : m_graph.operators[position].outputs) {
        if (id && m_maker[index(id)] == number)
            m_maker[index(id)] = -1;
    }
}

void FuseEditor::addUser(TensorId id, std::int32_t user)
{
    if (!isTracked(id))
        return;
    std::vector<std::int32_t> &users = m_users[index(id)];
    if (std::find(users.begin(), users.end(), user) == users.end())
        users.push_back(user);
}

TensorId FuseEditor::addTensor(TensorType type, TensorId like, const std::string &suffix)
{
    if (!m_tensorNames)
        m_tensorNames = UniqueNames::ofTensors(m_graph);
    Tensor tensor;
    tensor.name = m_tensorNames->take(m_graph.at(like).name + "." + suffix);
    tensor.type = std::move(type);
    m_graph.tensors.push_back(std::move(tensor));
    m_isOutput.push_back(false);
    m_maker.push_back(-1);
    m_users.emplace_back();
    return TensorId{static_cast<std::int32_t>(m_graph.tensors.size()) - 1};
}

void FuseEditor::replace(const std::vector<const Operator *> &old, std::vector<Operator> made)
{
    assert(!made.empty());
    const TensorId last = made.back().outputs.front();
    const auto place = static_cast<std::size_t>(m_maker[index(last)]);
    std::vector<SourceNode> sources;
    for (const Operator *member : old)
        sources.insert(sources.end(), member->sources.begin(), member->sources.end());
    const ScopeId scope = m_graph.operators[place].scope;
    replace(old, std::move(made.back()));
    made.pop_back();
    for (Operator &op : made) {
        op.sources = sources;
        op.scope = scope;
        const auto number = static_cast<std::int32_t>(m_graph.operators.size() + m_inserted.size());
        for (const TensorId id : op.inputs)
            addUser(id, number);
        m_inserted.push_back({place, std::move(op)});
    }
}

void FuseEditor::replace(const std::vector<const Operator *> &old, Operator fused)
{
    assert(!old.empty() && !fused.outputs.empty());
    std::vector<std::size_t> positions;
    for (const Operator *member : old)
        positions.push_back(positionOf(*member));
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    assert(m_maker[index(fused.outputs.front())] >= 0);
    const auto place = static_cast<std::size_t>(m_maker[index(fused.outputs.front())]);
    for (const std::size_t position : positions) {
        const std::vector<SourceNode> &sources = m_graph.operators[position].sources;
        fused.sources.insert(fused.sources.end(), sources.begin(), sources.end());
        remove(position);
    }
    fused.name = m_graph.operators[place].name;
    fused.scope = m_graph.operators[place].scope;
    m_graph.operators[place] = std::move(fused);
    m_alive[place] = true;
    m_fused[place] = true;
    const Operator &made = m_graph.operators[place];
    const auto number = static_cast<std::int32_t>(place);
    for (const TensorId id : made.outputs) {
        if (id)
            m_maker[index(id)] = number;
    }
    for (const TensorId id : made.inputs)
        addUser(id, number);
}

bool FuseEditor::bypass(const Operator &old, TensorId instead)
{
    const TensorId output = old.outputs.front();
    if (isModelOutput(output))
        return false;
    remove(positionOf(old));
    for (const std::int32_t user : std::exchange(m_users[index(output)], {})) {
        const auto at = static_cast<std::size_t>(user);
        Operator &reader = at < m_graph.operators.size() ? m_graph.operators[at]
                                                         : m_inserted[at - m_graph.operators.size()].op;
        for (TensorId &id : reader.inputs) {
            if (id == output)
                id = instead;
        }
        addUser(instead, user);
    }
    return true;
}

/// An operator that is all of its module is called like the module ("h.3.attn.c_attn"); another fused one
/// like the module and its kind ("h.3.mlp.Gelu").
void FuseEditor::nameFused()
{
    std::unordered_map<std::string, std::int32_t> inModule; // operators in a module or its inner ones
    std::unordered_set<std::string> taken;
    std::unordered_map<std::string, std::int32_t> numbers; // the last one given to each name
    std::vector<std::string> prefixes(m_graph.operators.size());
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        prefixes[i] = commonPrefix(m_graph.operators[i].sources);
        for (std::size_t dot = prefixes[i].find('.'); dot != std::string::npos;
             dot = prefixes[i].find('.', dot + 1))
            ++inModule[prefixes[i].substr(0, dot + 1)];
        if (!m_fused[i])
            taken.insert(m_graph.operators[i].name);
    }
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        Operator &op = m_graph.operators[i];
        std::string name = op.name;
        if (!prefixes[i].empty() && inModule[prefixes[i]] == 1)
            name = prefixes[i].substr(0, prefixes[i].size() - 1);
        else if (m_fused[i] && !prefixes[i].empty())
            name = prefixes[i] + nameOf(op.kind);
        else if (m_fused[i] && name.empty())
            name = nameOf(op.kind);
        if (!m_fused[i]) {
            if (name == op.name)
                continue;
            taken.erase(op.name);
        }
        std::string unique = name;
        while (!taken.insert(unique).second)
            unique = name + "_" + std::to_string(++numbers[name]);
        op.name = std::move(unique);
    }
}

/// Gives inserted operators their places among the others; after it, positions are no longer those of before.
void FuseEditor::placeInserted()
{
    if (m_inserted.empty())
        return;
    std::stable_sort(m_inserted.begin(), m_inserted.end(),
        [](const Inserted &a, const Inserted &b) { return a.before < b.before; });
    std::vector<Operator> operators;
    std::vector<bool> alive;
    std::vector<bool> fused;
    const auto append = [&](Operator &op, bool lives, bool isFused) {
        operators.push_back(std::move(op));
        alive.push_back(lives);
        fused.push_back(isFused);
    };
    auto next = m_inserted.begin();
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        for (; next != m_inserted.end() && next->before == i; ++next)
            append(next->op, true, true);
        append(m_graph.operators[i], m_alive[i], m_fused[i]);
    }
    m_graph.operators = std::move(operators);
    m_alive = std::move(alive);
    m_fused = std::move(fused);
    m_inserted.clear();
}

void FuseEditor::compact()
{
    placeInserted();
    std::vector<bool> used = m_isOutput;
    for (std::size_t i = m_graph.operators.size(); i-- > 0;) {
        const Operator &op = m_graph.operators[i];
        const bool needed = m_alive[i] && std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
            return id && used[index(id)];
        });
        m_alive[i] = needed;
        if (!needed)
            continue;
        for (const TensorId id : op.inputs) {
            if (id)
                used[index(id)] = true;
        }
        for (const TensorId id : op.outputs) {
            if (id)
                used[index(id)] = true;
        }
    }
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (!m_alive[i])
            continue;
        m_fused[operators.size()] = m_fused[i];
        operators.push_back(std::move(m_graph.operators[i]));
    }
    m_graph.operators = std::move(operators);
    std::vector<TensorId> now(m_graph.tensors.size());
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < m_graph.tensors.size(); ++i) {
        const TensorRole role = m_graph.tensors[i].role;
        const bool droppable = role == TensorRole::Activation || role == TensorRole::Buffer;
        if (droppable && !used[i])
            continue;
        now[i] = TensorId{static_cast<std::int32_t>(tensors.size())};
        tensors.push_back(std::move(m_graph.tensors[i]));
    }
    m_graph.tensors = std::move(tensors);
    const auto renumber = [&now](std::vector<TensorId> &ids) {
        for (TensorId &id : ids) {
            if (id)
                id = now[index(id)];
        }
    };
    for (Operator &op : m_graph.operators) {
        renumber(op.inputs);
        renumber(op.outputs);
    }
    renumber(m_graph.inputs);
    renumber(m_graph.outputs);
    if (m_graph.loss)
        m_graph.loss = now[index(m_graph.loss)];
}

Graph FuseEditor::finish()
{
    compact();
    nameFused();
    return std::move(m_graph);
}

} // namespace planloom
