#include "engine/interop/torch/operator_modules.h"

#include "engine/interop/torch/embedded_runtime.h"
#include "engine/interop/torch/python_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

namespace planloom {

namespace {

constexpr std::string_view kFolder = "runtime/operators/";
constexpr std::size_t kWidth = 120;

/// A function of a module, or a value that it has; with comments before it.
struct Part {
    std::string name{};
    std::string text{};
    bool isUsed = false;
};

struct Module {
    std::string head{}; ///< What it says of itself.
    std::vector<std::string> imports{}; ///< Lines; empty ones set groups apart.
    std::vector<Part> parts{};
};

std::string leadingName(std::string_view text)
{
    std::size_t end = 0;
    while (
        end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
    return std::string(text.substr(0, end));
}

/// Without what is said about it: descriptions in triple quotes, and comments.
std::string codeOf(std::string_view text)
{
    std::string code;
    for (std::size_t at = 0; at < text.size();) {
        if (text.substr(at).starts_with("\"\"\""))
            at = std::min(text.find("\"\"\"", at + 3), text.size() - 3) + 3;
        else if (text[at] == '#')
            at = std::min(text.find('\n', at), text.size());
        else
            code += text[at++];
    }
    return code;
}

/// Lines at the left begin something: a function, a value, or what is written about the next one.
Module moduleIn(std::string_view text)
{
    Module module;
    const std::size_t words = text.find("\"\"\"", 3) + 3;
    module.head = std::string(text.substr(0, words));
    std::string pending; // comments
    bool inImports = true;
    for (std::size_t begin = words + 1; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
        const std::string line(text.substr(begin, end - begin));
        begin = end;
        const bool isImport = line.starts_with("import ") || line.starts_with("from ");
        inImports = inImports && (isImport || line == "\n");
        if (inImports) {
            module.imports.push_back(line.substr(0, line.size() - 1));
        } else if (line.starts_with('#')) {
            pending += line;
        } else if (line != "\n" && line[0] != ' ' && line[0] != ')') {
            const std::size_t skipped = line.starts_with("def ") ? 4 : line.starts_with("class ") ? 6 : 0;
            module.parts.push_back(
                {leadingName(std::string_view(line).substr(skipped)), pending + line, false});
            pending.clear();
        } else if (pending.empty() && !module.parts.empty()) {
            module.parts.back().text += line;
        } else if (line != "\n") {
            pending += line;
        } else if (!pending.empty()) {
            pending += line;
        }
    }
    for (Part &part : module.parts)
        part.text.erase(part.text.find_last_not_of('\n') + 1);
    return module;
}

/// Marks `name`, and what it uses, wherever it is.
void use(std::map<std::string, Module> &modules, const std::string &name)
{
    for (auto &[path, module] : modules)
        for (Part &part : module.parts) {
            if (part.name != name || part.isUsed)
                continue;
            part.isUsed = true;
            const std::string code = codeOf(part.text);
            for (const auto &[otherPath, other] : modules)
                for (const Part &each : other.parts)
                    if (!each.isUsed && usesName(code, each.name))
                        use(modules, each.name);
        }
}

/// "import torch.nn.functional as F" and "from .common import a, b" as far as `text` uses what they bring.
std::string importNeeded(const std::string &line, const std::string &text)
{
    const std::size_t names = line.starts_with("from ") ? line.find(" import ") + 8 : 7;
    std::vector<std::string> kept;
    for (std::size_t begin = names; begin < line.size();) {
        const std::size_t end = std::min(line.find(", ", begin), line.size());
        const std::string item = line.substr(begin, end - begin);
        const std::size_t as = item.find(" as ");
        if (usesName(text, as == std::string::npos ? item : item.substr(as + 4)))
            kept.push_back(item);
        begin = end + 2;
    }
    return kept.empty() ? std::string{} : line.substr(0, names) + joinedBy(kept);
}

std::string textOf(const Module &module)
{
    std::string body;
    bool wasFunction = true;
    for (const Part &part : module.parts) {
        if (!part.isUsed)
            continue;
        const bool isFunction = part.text.find("def ") != std::string::npos;
        body += (isFunction || wasFunction ? "\n\n" : "\n") + part.text + "\n";
        wasFunction = isFunction;
    }
    const std::string code = codeOf(body);
    std::string imports;
    bool apart = false;
    for (const std::string &line : module.imports) {
        const std::string needed = line.empty() ? std::string{} : importNeeded(line, code);
        apart = apart || line.empty();
        if (needed.empty())
            continue;
        imports += (apart ? "\n" : "") + needed + "\n";
        apart = false;
    }
    return module.head + "\n" + imports + body;
}

/// Lines of names within brackets.
std::string listed(const std::string &begin, const std::vector<std::string> &names, const char *end)
{
    std::string text = begin;
    std::string line;
    for (const std::string &name : names) {
        if (!line.empty() && line.size() + name.size() + 6 > kWidth) {
            text += "    " + line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + name + ",";
    }
    return text + "    " + line + "\n" + end + "\n";
}

} // namespace

std::map<std::string, std::string> operatorModules(const std::string &programs)
{
    std::map<std::string, Module> modules;
    std::string about;
    for (const RuntimeFile &file : embeddedRuntime()) {
        if (!file.path.starts_with(kFolder))
            continue;
        if (file.path.ends_with("__init__.py"))
            about = file.text.substr(0, file.text.find("\"\"\"", 3) + 3);
        else
            modules.emplace(std::string(file.path), moduleIn(file.text));
    }
    for (std::size_t at = programs.find("ops."); at != std::string::npos; at = programs.find("ops.", at + 4))
        use(modules, leadingName(std::string_view(programs).substr(at + 4)));
    std::map<std::string, std::string> made;
    std::string list = about + "\n\n";
    std::vector<std::string> all;
    for (const auto &[path, module] : modules) {
        std::vector<std::string> names;
        for (const Part &part : module.parts)
            if (part.isUsed && part.name[0] != '_')
                names.push_back(part.name);
        if (names.empty())
            continue;
        made[path] = textOf(module);
        const std::string name = path.substr(kFolder.size(), path.size() - kFolder.size() - 3);
        list += listed("from ." + name + " import (\n", names, ")");
        for (const std::string &each : names)
            all.push_back("\"" + each + "\"");
    }
    made[std::string(kFolder) + "__init__.py"] = list + "\n" + listed("__all__ = [\n", all, "]");
    return made;
}

} // namespace planloom
