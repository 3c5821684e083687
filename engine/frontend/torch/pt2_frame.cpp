#include "engine/frontend/torch/pt2_frame.h"

#include <utility>

namespace planloom {

Pt2Frame::Pt2Frame(const Pt2Graph &graph)
    : m_graph(graph)
{
    for (std::size_t position = 0; position < graph.nodes.size(); ++position) {
        for (const Pt2NamedArgument &input : graph.nodes[position].inputs)
            noteUse(input.value, position);
    }
    for (const Pt2Argument &output : graph.outputs)
        noteUse(output, graph.nodes.size());
}

void Pt2Frame::noteUse(const Pt2Argument &argument, std::size_t position)
{
    if (const auto *tensor = std::get_if<Pt2Tensor>(&argument)) {
        m_lastUse[tensor->name] = position;
    } else if (const auto *tensors = std::get_if<std::vector<Pt2Tensor>>(&argument)) {
        for (const Pt2Tensor &item : *tensors)
            m_lastUse[item.name] = position;
    } else if (const auto *symbol = std::get_if<Pt2Symbol>(&argument)) {
        m_lastUse[symbol->name] = position;
    } else if (const auto *numbers = std::get_if<std::vector<Pt2Number>>(&argument)) {
        for (const Pt2Number &number : *numbers) {
            if (const auto *named = std::get_if<Pt2Symbol>(&number))
                m_lastUse[named->name] = position;
        }
    }
}

const AtenValue *Pt2Frame::find(const std::string &name) const
{
    const auto found = m_values.find(name);
    return found == m_values.end() ? nullptr : &found->second;
}

bool Pt2Frame::isUsedBehind(const std::string &name, std::size_t position) const
{
    const auto found = m_lastUse.find(name);
    return found != m_lastUse.end() && found->second > position;
}

void Pt2Frame::addView(const std::string &view, const std::string &base, const Pt2Node &node)
{
    if (view == base || !m_views.emplace(view, View{base, &node}).second)
        return;
    m_sharing[rootOf(base)].push_back(view);
}

const Pt2Frame::View *Pt2Frame::viewOf(const std::string &name) const
{
    const auto found = m_views.find(name);
    return found == m_views.end() ? nullptr : &found->second;
}

std::string Pt2Frame::rootOf(std::string name) const
{
    for (const View *view = viewOf(name); view != nullptr; view = viewOf(name))
        name = view->base;
    return name;
}

std::vector<std::string> Pt2Frame::sharing(const std::string &name) const
{
    std::string root = rootOf(name);
    const auto found = m_sharing.find(root);
    std::vector<std::string> names = found == m_sharing.end() ? std::vector<std::string>{} : found->second;
    names.push_back(std::move(root));
    return names;
}

} // namespace planloom
