#include "engine/interop/configs/tree_text.h"

#include "engine/base/text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace planloom {

namespace {

constexpr std::int32_t kMostSteps = 16; ///< From one interpolation to another.

enum class TreeKind : std::uint8_t { Null, Scalar, List, Map };

struct TreeNode {
    TreeKind kind = TreeKind::Null;
    std::string text{};
    std::int32_t line = 0;
    std::vector<std::size_t> children{}; ///< Of a map key, value, key, value ...
};

/// Takes a document's events down as nodes; an alias is the node that it names.
class TreeBuilder : public YAML::EventHandler
{
public:
    void OnDocumentStart(const YAML::Mark &) override { }
    void OnDocumentEnd() override { }
    void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { add(mark, anchor, TreeKind::Null); }
    void OnAlias(const YAML::Mark &, YAML::anchor_t anchor) override { attach(m_anchors[anchor]); }
    void OnScalar(
        const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor, const std::string &value) override
    {
        add(mark, anchor, TreeKind::Scalar, value);
    }
    void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
        YAML::EmitterStyle::value) override
    {
        open(mark, anchor, TreeKind::List);
    }
    void OnSequenceEnd() override { m_open.pop_back(); }
    void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
        YAML::EmitterStyle::value) override
    {
        open(mark, anchor, TreeKind::Map);
    }
    void OnMapEnd() override { m_open.pop_back(); }

    const std::vector<TreeNode> &nodes() const { return m_nodes; }

private:
    std::size_t add(const YAML::Mark &mark, YAML::anchor_t anchor, TreeKind kind, std::string text = {})
    {
        const std::size_t node = m_nodes.size();
        m_nodes.push_back({kind, std::move(text), mark.line + 1, {}});
        if (anchor != YAML::NullAnchor)
            m_anchors[anchor] = node;
        attach(node);
        return node;
    }

    void open(const YAML::Mark &mark, YAML::anchor_t anchor, TreeKind kind)
    {
        if (m_open.size() >= static_cast<std::size_t>(kMostConfigDepth))
            throw YAML::Exception(mark, "values lie in values too deep");
        m_open.push_back(add(mark, anchor, kind));
    }

    void attach(std::size_t node)
    {
        if (!m_open.empty())
            m_nodes[m_open.back()].children.push_back(node);
    }

    std::vector<TreeNode> m_nodes{};
    std::vector<std::size_t> m_open{};
    std::map<YAML::anchor_t, std::size_t> m_anchors{};
};

/// Lists the settings of a tree.
class TreeLister
{
public:
    explicit TreeLister(const std::vector<TreeNode> &nodes)
        : m_nodes(nodes)
    {
    }

    Result<std::vector<Setting>> list()
    {
        if (!visit(0, {}, 0))
            return Error{ErrorCode::ResourceLimit,
                "this file comes to more than " + std::to_string(kMostSettings)
                    + " settings, or has values in values more than " + std::to_string(kMostConfigDepth)
                    + " deep",
                "write without aliases that repeat one another", "line:1:1"};
        return std::move(m_settings);
    }

private:
    bool visit(std::size_t at, const std::string &key, std::int32_t depth)
    {
        const TreeNode &node = m_nodes[at];
        if (depth > kMostConfigDepth || ++m_visits > kMostSettings)
            return false;
        if (node.kind == TreeKind::Map) {
            for (const bool merged : {true, false}) // what is merged gives way to what stands beside it
                for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
                    const TreeNode &name = m_nodes[node.children[i]];
                    if ((name.text == "<<") != merged)
                        continue;
                    const std::string inner = merged ? key : key.empty() ? name.text : key + "." + name.text;
                    if (inner.size() > 1000 || !visit(node.children[i + 1], inner, depth + 1))
                        return false;
                    if (!merged && isPlain(m_nodes[node.children[i + 1]]) && !m_settings.empty())
                        m_settings.back().line = name.line;
                }
            return true;
        }
        if (!isPlain(node)) {
            for (std::size_t i = 0; i < node.children.size(); ++i)
                if (!visit(node.children[i], key + "." + std::to_string(i), depth + 1))
                    return false;
            return true;
        }
        Setting setting{key, {}, node.line};
        if (node.kind == TreeKind::Scalar)
            setting.values.push_back(node.text);
        for (const std::size_t child : node.children)
            setting.values.push_back(m_nodes[child].text);
        if (node.kind == TreeKind::Null)
            setting.values.emplace_back("null");
        m_settings.push_back(std::move(setting));
        return true;
    }

    /// A value, or a list of values.
    bool isPlain(const TreeNode &node) const
    {
        return node.kind != TreeKind::Map
            && std::all_of(node.children.begin(), node.children.end(), [this](std::size_t child) {
                   return m_nodes[child].kind == TreeKind::Scalar || m_nodes[child].kind == TreeKind::Null;
               });
    }

    const std::vector<TreeNode> &m_nodes;
    std::size_t m_visits = 0;
    std::vector<Setting> m_settings{};
};

/// Puts in what "${...}" stands for.
class Interpolation
{
public:
    explicit Interpolation(std::vector<Setting> &settings)
        : m_settings(settings)
    {
        for (const Setting &setting : settings)
            if (setting.values.size() == 1)
                m_values[setting.key] = setting.values.front();
    }

    void resolve()
    {
        for (Setting &setting : m_settings)
            for (std::string &value : setting.values)
                if (value.starts_with("${") && value.ends_with('}'))
                    value = valueOf(value, 0);
    }

private:
    std::string valueOf(const std::string &text, std::int32_t steps) const
    {
        if (steps > kMostSteps || !text.starts_with("${") || !text.ends_with('}') || text.size() > 1000)
            return text;
        const std::string inner = text.substr(2, text.size() - 3);
        if (inner.starts_with("mul:") || inner.starts_with("div:")) {
            const std::size_t comma = commaOf(inner);
            if (comma == std::string::npos)
                return text;
            const auto left = wholeOf(valueOf(std::string(trimmed(inner.substr(4, comma - 4))), steps + 1));
            const auto right = wholeOf(valueOf(std::string(trimmed(inner.substr(comma + 1))), steps + 1));
            if (!left || !right || *right == 0)
                return text;
            return std::to_string(inner.starts_with("mul:") ? *left * *right : *left / *right);
        }
        const auto found = m_values.find(inner);
        return found == m_values.end() ? text : valueOf(found->second, steps + 1);
    }

    static std::size_t commaOf(const std::string &text)
    {
        std::int32_t depth = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
            if (text[i] == ',' && depth == 0)
                return i;
        }
        return std::string::npos;
    }

    static std::optional<std::int64_t> wholeOf(const std::string &text)
    {
        std::int32_t number = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool isWhole = failure == std::errc{} && end == text.data() + text.size();
        return isWhole ? std::optional<std::int64_t>(number) : std::nullopt;
    }

    std::vector<Setting> &m_settings;
    std::map<std::string, std::string> m_values{};
};

} // namespace

Result<SettingList> readTree(std::string_view text)
{
    TreeBuilder builder;
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        parser.HandleNextDocument(builder);
    } catch (const YAML::Exception &exception) {
        const bool isPlaced = !exception.mark.is_null();
        return Error{ErrorCode::InvalidInput, "this is neither YAML nor JSON: " + exception.msg,
            "a file of keys and values was expected",
            "line:" + std::to_string(isPlaced ? exception.mark.line + 1 : 1) + ":"
                + std::to_string(isPlaced ? exception.mark.column + 1 : 1)};
    }
    if (builder.nodes().empty() || builder.nodes().front().kind != TreeKind::Map)
        return Error{ErrorCode::InvalidInput, "expected keys with values, found none",
            "a line says \"key: value\"", "line:1:1"};
    SettingList list;
    TRY(list.settings, TreeLister(builder.nodes()).list());
    Interpolation(list.settings).resolve();
    return list;
}

} // namespace planloom
