#pragma once

#include "engine/base/result.h"
#include "engine/table/kinds/rule_traits.h"
#include "engine/table/selector.h"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

class TextCursor;

/// One walk over the parts of a rule, in the order of its text: it reads or writes the rule's text or its
/// JSON.
///
/// A kind of row describes its parts once, and the walk decides what becomes of them, as in LLVM's YAML I/O:
///
///     form.number("count", rule.count, {"a number of micro-batches in flight, as in-flight 3", 1});
///     form.numberAfter("stage", "stage", rule.stage, {"the number of a stage"});
///
///     in-flight 3 stage 0                                      {"count": 3, "stage": 0}
///
/// A part has a `key`, its member in JSON (empty: the value is the element of a list itself), and `what`, how
/// text calls it where it is missing. After the first error all that follows does nothing, and lists end.
/// While it writes, rules are left as they are.
class RuleForm
{
public:
    enum class Way : std::uint8_t { ReadText, WriteText, ReadJson, WriteJson };

    /// What a number may be. Text has a sign before it where it is positive and `hasSign` is set.
    struct Number {
        std::string_view what{};
        std::int64_t least = 0;
        std::int64_t most = kMostCount;
        bool hasSign = false;
    };

    /// @param word  that the row begins with; `cursor` stands behind it and the row's selector
    static RuleForm readText(TextCursor &cursor, std::string_view word);
    static RuleForm writeText() { return RuleForm(Way::WriteText); }
    /// @param where  the object's path in its document; both arguments outlive the walk
    static RuleForm readJson(const nlohmann::json &object, std::string where);
    static RuleForm writeJson(nlohmann::json &object);

    Way way() const { return m_way; }
    bool isText() const { return m_way == Way::ReadText || m_way == Way::WriteText; }
    bool reads() const { return m_way == Way::ReadText || m_way == Way::ReadJson; }
    bool failed() const { return m_error.has_value(); }
    std::string_view rowWord() const { return m_rowWord; } ///< Of ReadText.
    const std::string &text() const { return m_text; } ///< That was written.
    /// The first error. Of JSON that was read, members that no part asked for are one.
    Result<void> finish();

    // Parts that say whether there is more.

    /// Words of the grammar alone, "in all": text has them. Written, and true, if `isThere`.
    bool takes(std::string_view words, bool isThere = false);
    /// The member that JSON has then.
    bool holds(const std::string &key, bool isThere);
    /// What begins with `words` in text and is the member `key` in JSON.
    bool has(std::string_view words, const std::string &key, bool isThere)
    {
        return isText() ? takes(words, isThere) : holds(key, isThere);
    }

    // Parts that must be there.

    void word(std::string_view word, std::string_view what);
    /// @param isTight  written without spaces around it
    void symbol(char symbol, std::string_view why, bool isTight);
    /// What stands between two elements of a list. @return whether another element follows, of ReadText
    bool another(char separator, bool isTight);
    void number(const std::string &key, std::int64_t &value, const Number &number);
    void number(const std::string &key, std::int32_t &value, const Number &number);
    /// A number that is left out, with the word before it, where it is less than it may be.
    void numberAfter(
        std::string_view words, const std::string &key, std::int32_t &value, const Number &number);
    /// Any text, which is quoted where it would not read back as a word. @param quoted  always
    void name(const std::string &key, std::string &value, std::string_view what, bool quoted = false);
    /// The name of a mesh axis. @param mayBeEmpty  in JSON
    void axis(std::string &value, bool mayBeEmpty = true);
    /// A value that is written as a word of its own. @param toText, fromText  one reads what the other writes
    template<typename Value>
    void spelled(const std::string &key, Value &value, std::string_view what,
        std::string (*toText)(const Value &), Result<Value> (*fromText)(std::string_view),
        bool quoted = false);
    void selector(const std::string &key, Selector &value);
    /// True where the word, or the member, is there. @param words  if they are not the key
    void flag(const std::string &key, bool &value, std::string_view words = {});
    /// True and false have a word each.
    void either(const std::string &key, bool &value, std::string_view yes, std::string_view no,
        std::string_view what);
    /// One of `kinds`, by name. @param what  empty: the names
    template<typename Kind, typename Kinds>
    void choice(const std::string &key, Kind &value, const Kinds &kinds, std::string_view what = {})
    {
        choice(key, value, kinds, what, [](Kind kind) { return nameOf(kind); });
    }
    template<typename Kind, typename Kinds, typename NameOf>
    void choice(const std::string &key, Kind &value, const Kinds &kinds, std::string_view what, NameOf name);
    /// As `choice`, and may be missing.
    template<typename Kind, typename Kinds>
    void maybe(const std::string &key, std::optional<Kind> &value, const Kinds &kinds);
    /// As `choice`; neither text nor JSON says the first of `kinds`, though JSON may.
    template<typename Kind, typename Kinds>
    void option(const std::string &key, Kind &value, const Kinds &kinds, std::string_view what = {});
    /// At least one element. @param describe  (RuleForm &, element &): its parts
    /// @param next  (element &, const element *): between two elements; with null it reads whether another
    /// one follows. @param isIndexed  errors of JSON say which element
    template<typename Element, typename Describe, typename Next>
    void list(const std::string &key, std::vector<Element> &elements, Describe describe, Next next,
        bool isIndexed = false);

    // What is refused. Each does nothing while it writes.

    /// "expected WHAT": here, or at an earlier `place`.
    void expected(const std::string &key, std::string_view what, std::optional<std::size_t> place = {});
    /// JSON must not have the member. @param what  that is expected instead
    void refuse(const std::string &key, std::string_view what);
    std::size_t place(); ///< Of what comes next; 0 except of ReadText.

    // For parts with words and JSON of their own, which look at `way`.

    TextCursor &cursor() { return *m_cursor; } ///< Of ReadText.
    const nlohmann::json &input() const { return *m_input; } ///< Of ReadJson.
    nlohmann::json &output() { return *m_output; } ///< Of WriteJson.
    const std::string &where() const { return m_where; } ///< Of ReadJson.
    void say(std::string_view words); ///< Of WriteText.
    void knows(const std::string &key) { m_known.push_back(key); } ///< The member is somebody's.
    void fail(Error error);
    template<typename Value> void keep(Value &value, Result<Value> read)
    {
        if (read)
            value = *std::move(read);
        else
            fail(std::move(read).error());
    }

private:
    explicit RuleForm(Way way)
        : m_way(way)
    {
    }
    void choose(const std::string &key, std::size_t &chosen, std::span<const char *const> names,
        std::string_view what);
    /// Whether one of `names` comes next, or the member is there.
    bool isSaid(const std::string &key, std::span<const char *const> names);
    void failSpelling(const std::string &key, Error error, std::size_t place);
    std::size_t beginList(const std::string &key, std::size_t size);
    RuleForm elementOf(const std::string &key, std::size_t index, bool isIndexed);

    Way m_way = Way::WriteText;
    std::string_view m_rowWord{};
    TextCursor *m_cursor = nullptr;
    std::string m_text{};
    bool m_isTight = false; ///< What is written next follows without a space.
    const nlohmann::json *m_input = nullptr;
    std::string m_where{};
    std::vector<std::string> m_known{}; ///< Members of `m_input`.
    nlohmann::json *m_output = nullptr;
    std::optional<Error> m_error{};
};

/// The text of what `describe` describes.
template<typename Part, typename... Arguments>
std::string textOf(void (*describe)(RuleForm &, Part &, Arguments...), Part part, Arguments... arguments)
{
    RuleForm form = RuleForm::writeText();
    describe(form, part, arguments...);
    return form.text();
}

template<typename Value>
void RuleForm::spelled(const std::string &key, Value &value, std::string_view what,
    std::string (*toText)(const Value &), Result<Value> (*fromText)(std::string_view), bool quoted)
{
    const std::size_t begin = place();
    std::string spelling = reads() ? std::string{} : toText(value);
    name(key, spelling, what, quoted);
    if (!reads() || failed())
        return;
    auto read = fromText(spelling);
    if (read)
        value = *std::move(read);
    else
        failSpelling(key, std::move(read).error(), begin);
}

template<typename Kind, typename Kinds, typename NameOf>
void RuleForm::choice(
    const std::string &key, Kind &value, const Kinds &kinds, std::string_view what, NameOf name)
{
    std::vector<const char *> names;
    for (const Kind kind : kinds)
        names.push_back(name(kind));
    const auto begin = std::begin(kinds);
    auto chosen = static_cast<std::size_t>(std::find(begin, std::end(kinds), value) - begin);
    choose(key, chosen, names, what);
    if (reads() && !failed())
        value = begin[chosen];
}

template<typename Kind, typename Kinds>
void RuleForm::maybe(const std::string &key, std::optional<Kind> &value, const Kinds &kinds)
{
    std::vector<const char *> names;
    for (const Kind kind : kinds)
        names.push_back(nameOf(kind));
    if (reads() ? !isSaid(key, names) : !value)
        return;
    Kind said = value.value_or(*std::begin(kinds));
    choice(key, said, kinds);
    value = said;
}

template<typename Kind, typename Kinds>
void RuleForm::option(const std::string &key, Kind &value, const Kinds &kinds, std::string_view what)
{
    std::vector<const char *> names;
    for (auto kind = std::begin(kinds) + 1; kind != std::end(kinds); ++kind)
        names.push_back(nameOf(*kind));
    if (reads() ? isSaid(key, names) : value != *std::begin(kinds))
        choice(key, value, kinds, what);
}

template<typename Element, typename Describe, typename Next>
void RuleForm::list(
    const std::string &key, std::vector<Element> &elements, Describe describe, Next next, bool isIndexed)
{
    if (reads())
        elements.clear();
    if (m_way == Way::ReadText) {
        const Element *none = nullptr;
        do
            describe(*this, elements.emplace_back());
        while (!failed() && next(elements.back(), none));
    } else if (m_way == Way::WriteText) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            if (i > 0)
                next(elements[i - 1], &std::as_const(elements[i]));
            describe(*this, elements[i]);
        }
    } else {
        const std::size_t size = beginList(key, elements.size());
        for (std::size_t i = 0; i < size && !failed(); ++i) {
            if (reads())
                elements.emplace_back();
            RuleForm element = elementOf(key, i, isIndexed);
            describe(element, elements[i]);
            if (auto done = element.finish(); !done)
                fail(std::move(done).error());
        }
    }
}

} // namespace planloom
