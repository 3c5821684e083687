#include "engine/table/rule_form.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

/// "states or activations", "selection, layer or operator"; those that are empty are passed by.
std::string oneOf(std::span<const char *const> names)
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!text.empty())
            text += i + 1 < names.size() ? ", " : " or ";
        text += names[i];
    }
    return text;
}

} // namespace

RuleForm RuleForm::readText(TextCursor &cursor, std::string_view word)
{
    RuleForm form(Way::ReadText);
    form.m_cursor = &cursor;
    form.m_rowWord = word;
    return form;
}

RuleForm RuleForm::readJson(const nlohmann::json &object, std::string where)
{
    RuleForm form(Way::ReadJson);
    form.m_input = &object;
    form.m_where = std::move(where);
    return form;
}

RuleForm RuleForm::writeJson(nlohmann::json &object)
{
    RuleForm form(Way::WriteJson);
    form.m_output = &object;
    return form;
}

Result<void> RuleForm::finish()
{
    if (!failed() && m_way == Way::ReadJson && m_input->is_object())
        if (auto known = requireMembers(*m_input, m_known, m_where); !known)
            fail(std::move(known).error());
    return failed() ? Result<void>(*m_error) : Result<void>{};
}

bool RuleForm::takes(std::string_view words, bool isThere)
{
    if (m_way == Way::WriteText && isThere)
        say(words);
    if (m_way != Way::ReadText)
        return isThere;
    const std::size_t begin = m_cursor->position();
    while (!failed() && m_cursor->takeWord(words.substr(0, words.find(' ')))) {
        if (words.find(' ') == words.npos)
            return true;
        words.remove_prefix(words.find(' ') + 1);
    }
    m_cursor->rewind(begin);
    return false;
}

bool RuleForm::holds(const std::string &key, bool isThere)
{
    if (m_way != Way::ReadJson)
        return isThere;
    knows(key);
    return !failed() && m_input->contains(key);
}

void RuleForm::word(std::string_view word, std::string_view what)
{
    if (isText() && !takes(word, true))
        expected({}, what);
}

void RuleForm::symbol(char symbol, std::string_view why, bool isTight)
{
    if (m_way == Way::WriteText) {
        m_isTight = m_isTight || isTight;
        say({&symbol, 1});
        m_isTight = isTight;
    } else if (m_way == Way::ReadText && !failed()) {
        if (auto there = m_cursor->require(symbol, why); !there)
            fail(std::move(there).error());
    }
}

bool RuleForm::another(char separator, bool isTight)
{
    if (m_way == Way::ReadText)
        return !failed() && m_cursor->take(separator);
    m_isTight = true;
    say({&separator, 1});
    m_isTight = isTight;
    return true;
}

void RuleForm::number(const std::string &key, std::int64_t &value, const Number &number)
{
    if (failed())
        return;
    switch (m_way) {
    case Way::ReadText:
        return keep(value, m_cursor->integer(number.what, number.least, number.most));
    case Way::WriteText:
        return say((number.hasSign && value > 0 ? "+" : "") + std::to_string(value));
    case Way::ReadJson:
        knows(key);
        return keep(value, integerAt(*m_input, key, m_where, number.least, number.most));
    case Way::WriteJson:
        memberOf(*m_output, key) = value;
    }
}

void RuleForm::number(const std::string &key, std::int32_t &value, const Number &range)
{
    std::int64_t wide = value;
    number(key, wide, range);
    if (reads())
        value = static_cast<std::int32_t>(wide);
}

void RuleForm::numberAfter(
    std::string_view words, const std::string &key, std::int32_t &value, const Number &range)
{
    if (has(words, key, value >= range.least))
        number(key, value, range);
}

void RuleForm::name(const std::string &key, std::string &value, std::string_view what, bool quoted)
{
    if (failed())
        return;
    switch (m_way) {
    case Way::ReadText:
        return keep(value, m_cursor->word(what));
    case Way::WriteText:
        return say(quoted ? inQuotes(value) : asWord(value));
    case Way::ReadJson:
        knows(key);
        return keep(value, textAt(*m_input, key, m_where));
    case Way::WriteJson:
        memberOf(*m_output, key) = value;
    }
}

void RuleForm::axis(std::string &value, bool mayBeEmpty)
{
    name("axis", value, "the name of a mesh axis");
    if (!isText() && !mayBeEmpty && value.empty())
        expected("axis", "the name of a mesh axis");
}

void RuleForm::selector(const std::string &key, Selector &value)
{
    if (failed())
        return;
    switch (m_way) {
    case Way::ReadText:
        return keep(value, parseSelector(*m_cursor));
    case Way::WriteText:
        return say(toString(value));
    case Way::ReadJson:
        knows(key);
        return keep(value, selectorAt(*m_input, key, m_where));
    case Way::WriteJson:
        memberOf(*m_output, key) = toString(value);
    }
}

void RuleForm::flag(const std::string &key, bool &value, std::string_view words)
{
    if (m_way != Way::ReadJson) {
        value = has(words.empty() ? key : words, key, value);
        if (m_way == Way::WriteJson && value)
            memberOf(*m_output, key) = true;
    } else if (holds(key, value)) {
        keep(value, flagAt(*m_input, key, m_where, false));
    }
}

void RuleForm::either(
    const std::string &key, bool &value, std::string_view yes, std::string_view no, std::string_view what)
{
    if (m_way == Way::WriteJson) {
        memberOf(*m_output, key) = value;
    } else if (!isText()) {
        flag(key, value);
    } else {
        value = takes(yes, value);
        if (!value)
            word(no, what);
    }
}

void RuleForm::choose(
    const std::string &key, std::size_t &chosen, std::span<const char *const> names, std::string_view what)
{
    if (!reads()) {
        const std::string_view said = chosen < names.size() ? names[chosen] : "";
        if (m_way == Way::WriteText)
            say(said);
        else
            memberOf(*m_output, key) = said;
        return;
    }
    std::string said;
    if (m_way == Way::ReadText && !failed())
        said = m_cursor->peekWord();
    else
        name(key, said, {});
    const auto found = std::find(names.begin(), names.end(), said);
    chosen = static_cast<std::size_t>(found - names.begin());
    if (found == names.end())
        expected(key, what.empty() ? oneOf(names) : what);
    else if (isText())
        m_cursor->takeWord(said);
}

bool RuleForm::isSaid(const std::string &key, std::span<const char *const> names)
{
    return m_way == Way::ReadText
        ? !failed() && std::find(names.begin(), names.end(), m_cursor->peekWord()) != names.end()
        : holds(key, true);
}

std::size_t RuleForm::beginList(const std::string &key, std::size_t size)
{
    if (m_way == Way::WriteJson) {
        memberOf(*m_output, key) = nlohmann::json::array();
        return size;
    }
    knows(key);
    const auto found = failed() ? Result<const nlohmann::json *>(*m_error) : listAt(*m_input, key, m_where);
    if (!found)
        fail(found.error());
    return found ? (*found)->size() : 0;
}

RuleForm RuleForm::elementOf(const std::string &key, std::size_t index, bool isIndexed)
{
    if (m_way == Way::WriteJson)
        return writeJson((*m_output)[key].emplace_back());
    return readJson(
        (*m_input)[key][index], m_where + "/" + key + (isIndexed ? "/" + std::to_string(index) : ""));
}

void RuleForm::expected(const std::string &key, std::string_view what, std::optional<std::size_t> place)
{
    if (failed() || !reads())
        return;
    if (!isText())
        return fail(wrong(pathOf(m_where, key), "expected " + std::string(what)));
    if (place)
        m_cursor->rewind(*place);
    fail(m_cursor->expected(what));
}

void RuleForm::refuse(const std::string &key, std::string_view what)
{
    if (m_way == Way::ReadJson && holds(key, false))
        expected(key, what);
}

std::size_t RuleForm::place()
{
    if (m_way != Way::ReadText)
        return 0;
    m_cursor->skipSpaces();
    return m_cursor->position();
}

void RuleForm::failSpelling(const std::string &key, Error error, std::size_t place)
{
    if (isText())
        return fail(m_cursor->at(place, std::move(error.message), std::move(error.advice)));
    error.where = pathOf(m_where, key);
    fail(std::move(error));
}

void RuleForm::say(std::string_view words)
{
    if (words.empty())
        return;
    if (!m_text.empty() && !m_isTight)
        m_text += ' ';
    m_text += words;
    m_isTight = false;
}

void RuleForm::fail(Error error)
{
    if (!failed())
        m_error = std::move(error);
}

} // namespace planloom
