#pragma once

#include "engine/frontend/torch/aten/aten_operators.h"
#include "engine/frontend/torch/pt2_program.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace planloom {

/// The values of one graph of a program while it is imported, and which of them share memory.
class Pt2Frame
{
public:
    explicit Pt2Frame(const Pt2Graph &graph);

    const Pt2Graph &graph() const { return m_graph; }

    /// Null if nothing makes the value (yet).
    const AtenValue *find(const std::string &name) const;
    /// Gives a value, new or written into, what it is now.
    void set(const std::string &name, AtenValue value) { m_values[name] = std::move(value); }

    /// True if a node or the graph's outputs read the value.
    bool isUsed(const std::string &name) const { return m_lastUse.count(name) != 0; }
    /// True if it is read behind node `position`.
    bool isUsedBehind(const std::string &name, std::size_t position) const;

    /// Says that `view`, made by `node`, shares the memory of `base`.
    void addView(const std::string &view, const std::string &base, const Pt2Node &node);
    /// The node that made `name` as a view, and of what; null if it is none.
    struct View {
        std::string base{};
        const Pt2Node *node = nullptr;
    };
    const View *viewOf(const std::string &name) const;
    /// All values that share memory with `name`, itself among them.
    std::vector<std::string> sharing(const std::string &name) const;

private:
    std::string rootOf(std::string name) const;
    void noteUse(const Pt2Argument &argument, std::size_t position);

    const Pt2Graph &m_graph;
    std::unordered_map<std::string, AtenValue> m_values{};
    std::unordered_map<std::string, std::size_t> m_lastUse{}; ///< Nodes' positions; outputs come after them.
    std::unordered_map<std::string, View> m_views{};
    std::unordered_map<std::string, std::vector<std::string>>
        m_sharing{}; ///< Views, by what they begin with.
};

} // namespace planloom
