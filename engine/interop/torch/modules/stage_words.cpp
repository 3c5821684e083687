#include "engine/interop/torch/modules/plan_words.h"

#include "engine/table/domain.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// "a", "a.b", "a.b.c" of "a.b.c".
std::vector<std::string> modulesAround(const std::string &path)
{
    std::vector<std::string> all;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
        all.push_back(path.substr(0, dot));
    if (!path.empty())
        all.push_back(path);
    return all;
}

/// A part of a scope's name may have dots ("h.0"): paths are of modules all the same.
class StageReader
{
public:
    StageReader(
        const WordsSource &source, const WordAxis &axis, const std::vector<Laid> &laid, ReadWords &read)
        : m_source(source)
        , m_graph(*source.plan.graph)
        , m_axis(axis)
        , m_laid(laid)
        , m_read(read)
        , m_stages(at(source.plan.stageCount))
    {
    }

    void run()
    {
        m_modules.resize(m_graph.operators.size());
        const std::vector<bool> isOfWeights = ofWeights();
        std::map<std::string, std::set<std::int32_t>> stagesOf;
        for (const OperatorId op : forwards()) {
            const std::string own = m_source.moduleOf(op);
            m_modules[at(op)] = own.empty() ? m_source.model.index->pathOf(m_graph.at(op).scope) : own;
            const auto &outputs = m_graph.at(op).outputs;
            const bool isOfStage = std::any_of(outputs.begin(), outputs.end(),
                [&](TensorId output) { return output.valid() && isOfWeights[at(output)]; });
            for (const std::string &module : modulesAround(m_modules[at(op)]))
                if (isOfStage) // what depends on no weights is made on every stage
                    stagesOf[module].insert(stageOf(op));
        }
        for (const auto &[module, stages] : stagesOf) {
            const auto isWhole = [&](const std::string &each) {
                return stagesOf.at(each).size() == 1 && isModule(each, stagesOf);
            };
            std::vector<std::string> around = modulesAround(module);
            around.pop_back();
            if (isWhole(module) && std::none_of(around.begin(), around.end(), isWhole))
                m_stages[at(*stages.begin())].modules.push_back(module);
        }
        for (const OperatorId op : forwards())
            m_stages[at(stageOf(op))].rank = rankOf(op);
        for (std::int32_t stage = 1; stage < m_source.plan.stageCount; ++stage)
            enter(stage);
        findTied();
        for (std::size_t s = 0; s < m_stages.size(); ++s)
            if (m_stages[s].modules.empty())
                refuse(firstOf(static_cast<std::int32_t>(s)), "no module is on this stage alone");
        m_read.words.stages = std::move(m_stages);
    }

private:
    std::vector<OperatorId> forwards() const
    {
        std::vector<OperatorId> all;
        for (std::size_t o = 0; o < m_source.model.index->forwardCount(); ++o)
            all.push_back(OperatorId{static_cast<std::int32_t>(o)});
        return all;
    }
    std::int32_t stageOf(OperatorId op) const
    {
        return std::max(0, m_source.plan.decisions[at(op)].stage.index);
    }
    OperatorId firstOf(std::int32_t stage) const
    {
        for (const OperatorId op : forwards())
            if (stageOf(op) == stage)
                return op;
        return OperatorId{0};
    }
    void refuse(OperatorId op, std::string why)
    {
        m_read.refused.push_back({op, m_axis.name, std::move(why)});
    }

    /// False for lists of modules ("h" of "h.0"), which are not called and can't be passed by.
    bool isModule(const std::string &path, const std::map<std::string, std::set<std::int32_t>> &all) const
    {
        if (!m_source.classes.empty())
            return m_source.classes.contains(path);
        const auto inner = all.lower_bound(path + ".0");
        return inner == all.end() || inner->first.compare(0, path.size() + 2, path + ".0") != 0;
    }

    std::int32_t rankOf(OperatorId op) const
    {
        std::vector<MeshAxis> mesh = m_source.mesh;
        const auto &devices = m_source.plan.decisions[at(op)].devices;
        const DeviceId device =
            m_source.plan.units.deviceOf(0, devices.empty() ? DeviceId{0} : devices.front());
        const auto places = coordinatesOf(mesh, device);
        for (std::size_t i = 0; places && i < mesh.size(); ++i)
            if (mesh[i].name == m_axis.name)
                return (*places)[i];
        return 0;
    }

    /// What goes from one stage to the next has to be one tensor, that one module is given.
    void enter(std::int32_t stage)
    {
        const std::vector<bool> isOfWeights = ofWeights();
        std::set<TensorId> crossing;
        std::map<TensorId, std::int32_t> makers;
        for (const OperatorId op : forwards())
            for (const TensorId output : m_graph.at(op).outputs)
                if (output.valid())
                    makers[output] = stageOf(op);
        for (const OperatorId op : forwards())
            for (const TensorId input : m_graph.at(op).inputs) {
                const auto maker = input.valid() ? makers.find(input) : makers.end();
                if (maker != makers.end() && isOfWeights[at(input)] && maker->second < stage
                    && stageOf(op) >= stage)
                    crossing.insert(input);
            }
        if (crossing.size() != 1)
            return refuse(firstOf(stage),
                std::to_string(crossing.size()) + " tensors go into stage " + std::to_string(stage)
                    + ", and PyTorch's stages hand on one");
        const TensorId tensor = *crossing.begin();
        ModuleStage &own = m_stages[at(stage)];
        for (const std::string &module : own.modules) {
            const bool readsAll = std::all_of(m_source.model.index->uses().consumers[at(tensor)].begin(),
                m_source.model.index->uses().consumers[at(tensor)].end(), [&](OperatorId reader) {
                    return m_graph.at(reader).direction != Direction::Forward || stageOf(reader) < stage
                        || (m_modules[at(reader)] + ".").starts_with(module + ".");
                });
            if (readsAll)
                own.first = module;
        }
        if (own.first.empty())
            return refuse(firstOf(stage),
                "stage " + std::to_string(stage) + " does not begin where a module begins: several read "
                    + m_graph.at(tensor).name);
        if (!m_laid.empty() && m_laid[at(tensor)].isDTensor)
            own.enters = m_laid[at(tensor)].placement;
    }

    /// By tensor: whether it depends on weights. What does not is made on each stage that needs it.
    std::vector<bool> ofWeights() const
    {
        std::vector<bool> all(m_graph.tensors.size());
        for (std::size_t t = 0; t < all.size(); ++t)
            all[t] = m_graph.tensors[t].role == TensorRole::Weight;
        for (const OperatorId op : forwards()) {
            const Operator &each = m_graph.at(op);
            const bool any = std::any_of(each.inputs.begin(), each.inputs.end(),
                [&all](TensorId input) { return input.valid() && all[at(input)]; });
            for (const TensorId output : each.outputs)
                if (output.valid() && any)
                    all[at(output)] = true;
        }
        return all;
    }

    void findTied()
    {
        for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
            if (m_graph.tensors[t].role != TensorRole::Weight)
                continue;
            const std::string &name = nameInFiles(m_graph.tensors[t]);
            std::set<std::int32_t> stages;
            std::set<std::string> names;
            for (const OperatorId reader : m_source.model.index->uses().consumers[t])
                if (m_graph.at(reader).direction == Direction::Forward) {
                    stages.insert(stageOf(reader));
                    names.insert(m_modules[at(reader)] + name.substr(name.rfind('.')));
                }
            if (stages.size() > 1)
                m_read.words.tied.emplace_back(names.begin(), names.end());
        }
    }

    const WordsSource &m_source;
    const Graph &m_graph;
    const WordAxis &m_axis;
    const std::vector<Laid> &m_laid;
    ReadWords &m_read;
    std::vector<ModuleStage> m_stages{};
    std::vector<std::string> m_modules{}; ///< By operator: the innermost module that it is of.
};

} // namespace

void readStageWords(
    const WordsSource &source, const WordAxis &axis, const std::vector<Laid> &laid, ReadWords &read)
{
    StageReader(source, axis, laid, read).run();
}

} // namespace planloom
