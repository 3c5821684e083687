#include "engine/frontend/onnx/onnx_metadata.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostModules = 64; ///< Around one node; real models stay below 20.

/// Length of the UTF-8 character that `text` begins with; 0 if it is none.
std::size_t characterLength(std::string_view text)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || length > text.size())
        return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80U)
            return 0;
    }
    return length;
}

/// Reads one text of a list of Python's, behind whose opening quote `text` begins; leaves what follows it.
bool takeText(std::string_view &text, char quote, std::string &taken)
{
    while (!text.empty()) {
        char c = text.front();
        text.remove_prefix(1);
        if (c == quote)
            return true;
        if (c == '\\') {
            // Of escapes only those that make a character of a name are known.
            if (text.empty() || (text.front() != '\\' && text.front() != '\'' && text.front() != '"'))
                return false;
            c = text.front();
            text.remove_prefix(1);
        }
        taken += c;
    }
    return false;
}

void skipSpaces(std::string_view &text)
{
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

/// The module path of exporters that write it into names: "model/layers.0/mlp".
std::string pathOf(const std::vector<std::string> &modules)
{
    std::string path;
    std::string_view outer;
    for (const std::string &module : modules) {
        std::string_view own = module;
        // A module that is called from one that does not hold it keeps its whole name.
        if (!outer.empty() && own.size() > outer.size() && own.substr(0, outer.size()) == outer
            && own[outer.size()] == '.')
            own.remove_prefix(outer.size() + 1);
        path += path.empty() ? "" : "/";
        path += own;
        outer = module;
    }
    return path;
}

void keepCommon(std::optional<std::vector<std::string>> &common, const std::vector<std::string> &modules)
{
    if (!common) {
        common = modules;
        return;
    }
    const auto [end, unused] = std::mismatch(common->begin(), common->end(), modules.begin(), modules.end());
    common->erase(end, common->end());
}

/// Fills in the modules of nodes that say none.
void placeUnnamed(OnnxGraph &graph)
{
    std::unordered_map<std::string_view, const OnnxNode *> makers;
    std::unordered_map<std::string_view, std::vector<const OnnxNode *>> readers;
    bool any = false;
    bool all = true;
    for (const OnnxNode &node : graph.nodes) {
        any = any || node.modules;
        all = all && node.modules;
    }
    if (!any || all)
        return;
    for (const OnnxNode &node : graph.nodes) {
        for (const std::string &output : node.outputs)
            makers.emplace(output, &node);
        for (const std::string &input : node.inputs)
            readers[input].push_back(&node);
    }
    for (OnnxNode &node : graph.nodes) {
        if (node.modules)
            continue;
        std::optional<std::vector<std::string>> common;
        for (const std::string &input : node.inputs) {
            if (const auto maker = makers.find(input); maker != makers.end() && maker->second->modules)
                keepCommon(common, *maker->second->modules);
        }
        for (const std::string &output : node.outputs) {
            const auto found = readers.find(output);
            if (found == readers.end())
                continue;
            for (const OnnxNode *reader : found->second) {
                if (reader->modules)
                    keepCommon(common, *reader->modules);
            }
        }
        node.modules = std::move(common);
    }
}

} // namespace

bool isPlainName(std::string_view name)
{
    if (name.empty() || name.size() > kMostNameBytes)
        return false;
    while (!name.empty()) {
        const std::size_t length = characterLength(name);
        const auto first = static_cast<unsigned char>(name.front());
        const bool control = first < 0x20 || first == 0x7f
            || (first == 0xc2 && length == 2 && static_cast<unsigned char>(name[1]) < 0xa0);
        if (length == 0 || control)
            return false;
        name.remove_prefix(length);
    }
    return true;
}

std::optional<std::vector<std::string>> parseTextList(std::string_view text)
{
    std::vector<std::string> list;
    skipSpaces(text);
    if (text.empty() || text.front() != '[')
        return std::nullopt;
    text.remove_prefix(1);
    skipSpaces(text);
    while (!text.empty() && (text.front() == '\'' || text.front() == '"')) {
        const char quote = text.front();
        text.remove_prefix(1);
        if (list.size() == kMostListed || !takeText(text, quote, list.emplace_back()))
            return std::nullopt;
        skipSpaces(text);
        if (text.empty() || text.front() != ',')
            break;
        text.remove_prefix(1);
        skipSpaces(text);
    }
    return text == "]" ? std::optional(std::move(list)) : std::nullopt;
}

std::optional<OnnxSpecKind> specKindNamed(std::string_view name)
{
    constexpr std::string_view kPrefix = "InputKind.";
    if (name.substr(0, kPrefix.size()) == kPrefix)
        name.remove_prefix(kPrefix.size());
    constexpr std::pair<std::string_view, OnnxSpecKind> kKinds[] = {{"PARAMETER", OnnxSpecKind::Parameter},
        {"BUFFER", OnnxSpecKind::Buffer}, {"CONSTANT_TENSOR", OnnxSpecKind::ConstantTensor},
        {"USER_INPUT", OnnxSpecKind::UserInput}};
    for (const auto &[word, kind] : kKinds) {
        if (name == word)
            return kind;
    }
    return std::nullopt;
}

std::optional<std::vector<std::string>> modulesOf(std::string_view nameScopes)
{
    auto list = parseTextList(nameScopes);
    if (!list || list->size() < 2 || list->size() > kMostModules + 2 || !list->front().empty())
        return std::nullopt;
    list->erase(list->begin());
    list->pop_back();
    if (!std::all_of(list->begin(), list->end(),
            [](const std::string &name) { return isPlainName(name) && name.find('/') == std::string::npos; }))
        return std::nullopt;
    return list;
}

std::map<std::string, OnnxSpecKind, std::less<>> signatureOf(std::string_view text)
{
    constexpr std::string_view kTarget = " target='";
    std::map<std::string, OnnxSpecKind, std::less<>> signature;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t colon = line.find(": ");
        const std::size_t target = line.find(kTarget);
        if (colon == std::string_view::npos || target == std::string_view::npos || target < colon + 2)
            continue;
        const auto kind = specKindNamed(line.substr(colon + 2, target - colon - 2));
        const std::string_view behind = line.substr(target + kTarget.size());
        const std::string_view name = behind.substr(0, std::min(behind.find('\''), behind.size()));
        if (kind && isPlainName(name))
            signature.emplace(name, *kind);
    }
    return signature;
}

void nameByModules(OnnxGraph &graph)
{
    placeUnnamed(graph);
    for (OnnxNode &node : graph.nodes) {
        if (!node.modules || node.modules->empty())
            continue;
        // A name that has a path already keeps it; what stands behind the last slash is its own.
        const std::size_t slash = node.name.rfind('/');
        const std::string own = slash == std::string::npos ? node.name : node.name.substr(slash + 1);
        const std::string &named = own.empty() && !node.outputs.empty() ? node.outputs.front() : own;
        node.name = "/" + pathOf(*node.modules) + "/" + (named.empty() ? node.type : named);
    }
}

} // namespace planloom
