#include "engine/interop/configs/read_config.h"

#include "engine/base/text.h"
#include "engine/interop/configs/config_keys.h"
#include "engine/interop/configs/literal_text.h"
#include "engine/interop/configs/shell_text.h"
#include "engine/interop/configs/shell_values.h"
#include "engine/interop/configs/tree_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace planloom {

namespace {

/// Every command's settings of a script; other files are one.
struct ConfigTexts {
    std::vector<SettingList> lists{};
    std::vector<Setting> always{}; ///< Directives of a scheduler.
    std::vector<std::string> notes{};
};

enum class TextSyntax : std::uint8_t { Shell, Tree, Python, Toml };

/// By the file's ending; else by the first line that says something.
TextSyntax syntaxOf(std::string_view text, std::string_view name)
{
    for (const auto &[ending, syntax] :
        {std::pair(".sh", TextSyntax::Shell), std::pair(".slurm", TextSyntax::Shell),
            std::pair(".sbatch", TextSyntax::Shell), std::pair(".yaml", TextSyntax::Tree),
            std::pair(".yml", TextSyntax::Tree), std::pair(".json", TextSyntax::Tree),
            std::pair(".py", TextSyntax::Python), std::pair(".toml", TextSyntax::Toml)})
        if (name.ends_with(ending))
            return syntax;
    while (!text.empty()) {
        const std::string_view line = trimmed(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
        if (line.starts_with("#!"))
            return TextSyntax::Shell;
        if (line.empty() || line.starts_with('#'))
            continue;
        if (line.starts_with('{'))
            return TextSyntax::Tree;
        if (line.starts_with("from ") || line.starts_with("import ") || line.starts_with("def ")
            || line.find("Config(") != std::string_view::npos || line.find("Args(") != std::string_view::npos)
            return TextSyntax::Python;
        if (line.starts_with('[') && line.ends_with(']'))
            return TextSyntax::Toml;
        const std::size_t end =
            line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
        if (end != std::string_view::npos && end > 0 && line[end] == ':')
            return TextSyntax::Tree;
        return TextSyntax::Shell;
    }
    return TextSyntax::Shell;
}

Result<ConfigTexts> textsOf(std::string_view text, const ConfigOptions &options)
{
    ConfigTexts texts;
    switch (syntaxOf(text, options.fileName)) {
    case TextSyntax::Shell: {
        TRY(ShellText shell, readShell(text, options.variables));
        for (const std::vector<ShellWord> &command : shell.commands)
            if (SettingList list{settingsOf(command), {}}; !list.settings.empty())
                texts.lists.push_back(std::move(list));
        texts.always = settingsOf(shell.directives);
        texts.notes = std::move(shell.notes);
        return texts;
    }
    case TextSyntax::Tree: {
        TRY(SettingList list, readTree(text));
        texts.lists.push_back(std::move(list));
        return texts;
    }
    case TextSyntax::Python: {
        TRY(SettingList list, readPython(text, options.function));
        texts.lists.push_back(std::move(list));
        return texts;
    }
    case TextSyntax::Toml: {
        TRY(SettingList list, readToml(text));
        texts.lists.push_back(std::move(list));
        return texts;
    }
    }
    return texts;
}

/// Keys that a format knows, those of launchers apart: these stand before any framework's.
std::size_t knownKeys(const ConfigFormat &format, const SettingList &list)
{
    return static_cast<std::size_t>(
        std::count_if(list.settings.begin(), list.settings.end(), [&format](const Setting &setting) {
            const auto [key, group] = findKey(format, plainKey(setting.key));
            return key != nullptr && group->keys.data() != launcherKeys().data();
        }));
}

bool isNothing(std::string_view value)
{
    for (const char *word : {"null", "none", "~", "auto", ""})
        if (sameLetters(value, word))
            return true;
    return false;
}

std::optional<bool> flagWord(std::string_view value)
{
    for (const char *word : {"true", "1", "yes", "on"})
        if (sameLetters(value, word))
            return true;
    for (const char *word : {"false", "0", "no", "off"})
        if (sameLetters(value, word))
            return false;
    return std::nullopt;
}

std::optional<double> numberWord(std::string_view value)
{
    double number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failure == std::errc{} && end == value.data() + value.size() && std::isfinite(number)
        && std::abs(number) <= 1e15)
        return number;
    const auto sum = integerOf(value);
    return sum ? std::optional(static_cast<double>(*sum)) : std::nullopt;
}

/// A word of ours as a value: a number, a flag, or a text.
SettingValue ourValue(std::string_view word)
{
    if (const auto number = numberWord(word))
        return *number;
    if (word == "true" || word == "false")
        return word == "true";
    return std::string(word);
}

/// Takes a list's settings into a config.
class ConfigTaker
{
public:
    explicit ConfigTaker(ImportedConfig &imported)
        : m_imported(imported)
        , m_format(*imported.format)
    {
    }

    void take(const std::vector<Setting> &settings)
    {
        for (const Setting &setting : settings)
            m_last[plainKey(setting.key)] = &setting;
        // What a format's table has later goes before what it has earlier; of one key the last one counts.
        std::vector<std::pair<std::size_t, const Setting *>> known;
        for (const Setting &setting : settings) {
            const std::string key = plainKey(setting.key);
            const auto [line, group] = findKey(m_format, key);
            if (line != nullptr && isEnabled(*group) && m_last[key] == &setting)
                known.emplace_back(rankOf(*line, *group), &setting);
            else if (line == nullptr && !isIrrelevant(m_format, key))
                m_imported.unknown.push_back(
                    {setting.key, setting.line, "no row is known to follow from it"});
            else
                m_imported.irrelevant.push_back({setting.key, setting.line, {}});
        }
        std::stable_sort(
            known.begin(), known.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (const auto &[rank, setting] : known)
            takeKnown(*setting, *findKey(m_format, plainKey(setting->key)).first);
        addStandards();
    }

private:
    bool isEnabled(const KeyGroup &group) const
    {
        if (group.enabledBy.empty())
            return true;
        const auto found = m_last.find(std::string(group.enabledBy));
        return found != m_last.end() && found->second->values.size() == 1
            && flagWord(found->second->values.front()).value_or(false);
    }

    std::size_t rankOf(const ConfigKey &key, const KeyGroup &group) const
    {
        std::size_t rank = 0;
        for (const KeyGroup &each : m_format.groups) {
            if (&each == &group)
                return rank + static_cast<std::size_t>(&key - group.keys.data());
            rank += each.keys.size();
        }
        return rank;
    }

    void unknown(const Setting &setting, std::string why)
    {
        m_imported.unknown.push_back({setting.key, setting.line, std::move(why)});
    }

    void takeKnown(const Setting &setting, const ConfigKey &key)
    {
        std::string value = setting.values.empty() ? "" : setting.values.front();
        if (key.field == "model") // "$HOME/models/Llama-3-8B" names a model, wherever it lies
            value =
                value.substr(value.find_last_of('/') == std::string::npos ? 0 : value.find_last_of('/') + 1);
        m_imported.understood.push_back({setting.key, setting.line, {}});
        const auto set = [&](SettingValue ours) {
            m_imported.config.set(key.field, {std::move(ours), setting.key, setting.line});
        };
        const bool isOpen =
            value.find('$') != std::string::npos || (value.starts_with('<') && value.ends_with('>'));
        const bool isSwitch = setting.key.starts_with("--") // whose next word is another's
            && (key.kind == KeyKind::Flag
                || (key.kind == KeyKind::Mapped && !mapped(key.words, "true").empty()));
        if (isOpen && isSwitch)
            value.clear();
        else if (isOpen && key.kind != KeyKind::Beyond) {
            m_imported.understood.pop_back();
            return unknown(setting,
                "its value " + value.substr(0, 60)
                    + " is not in the file: --set NAME=VALUE gives the variable one");
        }
        switch (key.kind) {
        case KeyKind::Count:
            if (const auto number = numberWord(value))
                set(*number);
            else if (!isNothing(value))
                m_imported.errors.push_back({ErrorCode::InvalidInput,
                    "expected a number for " + setting.key + ", found \"" + value.substr(0, 60) + "\"", "",
                    "line:" + std::to_string(setting.line)});
            break;
        case KeyKind::Flag:
            if (!isNothing(value) || setting.values.empty() || isSwitch)
                set(flagWord(value).value_or(true));
            break;
        case KeyKind::Text:
            if (!isNothing(value))
                set(value);
            break;
        case KeyKind::Words:
            if (!setting.values.empty() && !isNothing(value))
                set(setting.values);
            break;
        case KeyKind::Mapped:
            takeMapped(setting, key, value);
            break;
        case KeyKind::Beyond:
            if (!isWithoutEffect(key, value)) {
                m_imported.understood.pop_back();
                unknown(setting, std::string(key.words));
            }
            break;
        }
    }

    void takeMapped(const Setting &setting, const ConfigKey &key, const std::string &value)
    {
        std::string_view ours = mapped(key.words, value);
        const auto flag = setting.values.empty() ? std::optional(true) : flagWord(value);
        if (ours.empty() && (flag || setting.values.size() > 0))
            ours = mapped(key.words, flag.value_or(false) ? "true" : flag ? "false" : lowerCase(value));
        const bool isOption = setting.key.starts_with("--"); // "--swiglu train.py": what follows is no value
        if (ours.empty() && !flag && isOption)
            ours = mapped(key.words, "true");
        if (!ours.empty())
            m_imported.config.set(key.field, {ourValue(ours), setting.key, setting.line});
        else if (!flag && !isNothing(value) && value.find('.') == std::string::npos) {
            m_imported.understood.pop_back();
            unknown(setting, "\"" + value.substr(0, 60) + "\" is none of the values that rows are known for");
        }
    }

    static bool isWithoutEffect(const ConfigKey &key, const std::string &value)
    {
        std::string_view all = key.standard;
        while (true) {
            const std::string_view one = all.substr(0, all.find('|'));
            if (sameLetters(one, value) || (one == "null" && isNothing(value)))
                return true;
            if (one.size() == all.size())
                return false;
            all.remove_prefix(one.size() + 1);
        }
    }

    /// What the framework takes where nothing was said.
    void addStandards()
    {
        const auto add = [this](std::string_view field, std::string_view ours) {
            if (!ours.empty() && !m_imported.config.has(field))
                m_imported.config.set(field, {ourValue(ours), "", 0});
        };
        for (const auto &[field, ours] : m_format.standards)
            add(field, ours);
        for (const KeyGroup &group : m_format.groups)
            if (isEnabled(group))
                for (const ConfigKey &key : group.keys)
                    if (key.kind != KeyKind::Beyond)
                        add(key.field, standardOf(m_format, key));
    }

    ImportedConfig &m_imported;
    const ConfigFormat &m_format;
    std::map<std::string, const Setting *> m_last{};
};

} // namespace

Result<ImportedConfig> readConfig(std::string_view text, const ConfigOptions &options)
{
    if (text.size() > kMostConfigBytes)
        return Error{ErrorCode::ResourceLimit,
            "a config may have " + std::to_string(kMostConfigBytes) + " bytes",
            "keep what trains the model alone", ""};
    TRY(ConfigTexts texts, textsOf(text, options));
    const ConfigFormat *chosen = nullptr;
    if (!options.format.empty()) {
        TRY(chosen, configFormatNamed(options.format));
    }
    ImportedConfig imported;
    const SettingList *best = nullptr;
    std::size_t most = 0;
    for (const ConfigFormat &format : configFormats()) {
        if (chosen != nullptr && chosen != &format)
            continue;
        for (const SettingList &list : texts.lists)
            if (const std::size_t known = knownKeys(format, list);
                known > most || (known > 0 && known == most && imported.format == &format)) {
                most = known; // of a script's commands that say as much, the last
                imported.format = &format;
                best = &list;
            }
    }
    if (best == nullptr) {
        std::string names;
        for (const ConfigFormat &format : configFormats())
            names += (names.empty() ? "" : ", ") + std::string(format.name);
        return Error{ErrorCode::InvalidInput, "nothing here is a key that says how a model is trained",
            "configs of " + names + " are read", ""};
    }
    std::vector<Setting> settings = best->settings;
    settings.insert(settings.begin(), texts.always.begin(), texts.always.end());
    imported.notes = std::move(texts.notes);
    imported.notes.insert(imported.notes.end(), best->notes.begin(), best->notes.end());
    ConfigTaker(imported).take(settings);
    completeConfig(imported, options);
    return imported;
}

} // namespace planloom
