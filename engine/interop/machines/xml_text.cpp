#include "engine/interop/machines/xml_text.h"

#include <algorithm>

namespace planloom {

namespace {

bool isSpace(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool isNameLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'
        || c == '.' || c == ':';
}

class XmlReader
{
public:
    explicit XmlReader(std::string_view text)
        : m_text(text)
    {
    }

    Result<std::vector<XmlElement>> read()
    {
        if (m_text.substr(0, 3) == "\xEF\xBB\xBF")
            m_at = 3;
        if (begins("<?xml"))
            TRY_VOID(skipPast("?>", "the first line does not end"));
        while (true) {
            TRY_VOID(skipSpaceAndComments());
            if (m_at == m_text.size())
                break;
            if (m_text[m_at] != '<')
                return problem(ErrorCode::InvalidInput, "there is text between the tags",
                    "only elements and their attributes are read");
            TRY_VOID(begins("</") ? close() : open());
        }
        if (!m_open.empty())
            return problem(ErrorCode::InvalidInput,
                "the file ends inside of <" + m_elements[m_open.back()].name + ">, which begins in line "
                    + std::to_string(m_elements[m_open.back()].line),
                "the file may have been cut off");
        if (m_elements.empty())
            return problem(ErrorCode::InvalidInput, "there is no element", {});
        return std::move(m_elements);
    }

private:
    bool begins(std::string_view word) const { return m_text.substr(m_at, word.size()) == word; }

    Error problem(ErrorCode code, std::string message, std::string advice) const
    {
        const std::string_view before = m_text.substr(0, m_at);
        const auto line = std::count(before.begin(), before.end(), '\n') + 1;
        const std::size_t start = before.find_last_of('\n');
        const std::size_t column = m_at - (start == std::string_view::npos ? 0 : start + 1) + 1;
        return {code, std::move(message), std::move(advice),
            "line:" + std::to_string(line) + ":" + std::to_string(column)};
    }

    Result<void> skipPast(std::string_view end, const char *otherwise)
    {
        const std::size_t found = m_text.find(end, m_at);
        if (found == std::string_view::npos)
            return problem(ErrorCode::InvalidInput, otherwise, "the file may have been cut off");
        m_at = found + end.size();
        return {};
    }

    void skipSpace()
    {
        while (m_at < m_text.size() && isSpace(m_text[m_at]))
            ++m_at;
    }

    Result<void> skipSpaceAndComments()
    {
        while (true) {
            skipSpace();
            if (!begins("<!--"))
                return {};
            TRY_VOID(skipPast("-->", "a comment does not end"));
        }
    }

    /// Lines up to where the reader stands; each letter is looked at once.
    std::int32_t line()
    {
        for (; m_counted < m_at; ++m_counted)
            m_line += m_text[m_counted] == '\n' ? 1 : 0;
        return m_line;
    }

    std::string name()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && isNameLetter(m_text[m_at]))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    Result<void> open()
    {
        if (begins("<!"))
            return problem(ErrorCode::InvalidInput,
                "document types, entities and other declarations are not read", "leave them out");
        if (begins("<?"))
            return problem(
                ErrorCode::InvalidInput, "instructions are read in the first line alone", "leave it out");
        if (m_open.empty() && !m_elements.empty())
            return problem(ErrorCode::InvalidInput, "a second element stands beside the root", {});
        if (m_open.size() >= static_cast<std::size_t>(kMostXmlDepth))
            return problem(ErrorCode::ResourceLimit,
                "elements lie in elements more than " + std::to_string(kMostXmlDepth) + " deep", {});
        if (m_elements.size() >= kMostXmlElements)
            return problem(ErrorCode::ResourceLimit,
                "there are more than " + std::to_string(kMostXmlElements) + " elements", {});
        XmlElement element;
        element.line = line();
        ++m_at;
        element.name = name();
        if (element.name.empty())
            return problem(ErrorCode::InvalidInput, "the name of an element was expected", {});
        TRY(const bool isEmpty, readAttributes(element));
        const std::size_t index = m_elements.size();
        if (!m_open.empty())
            m_elements[m_open.back()].children.push_back(index);
        m_elements.push_back(std::move(element));
        if (!isEmpty)
            m_open.push_back(index);
        return {};
    }

    /// @return true if the tag ends in "/>"
    Result<bool> readAttributes(XmlElement &element)
    {
        while (true) {
            const std::size_t before = m_at;
            skipSpace();
            if (begins("/>")) {
                m_at += 2;
                return true;
            }
            if (begins(">")) {
                ++m_at;
                return false;
            }
            if (m_at == m_text.size())
                return problem(ErrorCode::InvalidInput, "the tag of <" + element.name + "> does not end",
                    "the file may have been cut off");
            std::string key = name();
            if (key.empty() || before == m_at - key.size())
                return problem(ErrorCode::InvalidInput,
                    "an attribute, \">\" or \"/>\" was expected in the tag of <" + element.name + ">", {});
            TRY(std::string value, readValue(key));
            if (element.attributes.size() >= kMostXmlAttributes)
                return problem(ErrorCode::ResourceLimit,
                    "<" + element.name + "> has more than " + std::to_string(kMostXmlAttributes)
                        + " attributes",
                    {});
            if (!element.attributes.emplace(key, std::move(value)).second)
                return problem(ErrorCode::InvalidInput, "the attribute \"" + key + "\" stands twice", {});
        }
    }

    Result<std::string> readValue(const std::string &key)
    {
        skipSpace();
        const bool hasEquals = begins("=");
        if (hasEquals) {
            ++m_at;
            skipSpace();
        }
        if (!hasEquals || (!begins("\"") && !begins("'")))
            return problem(ErrorCode::InvalidInput,
                "\"=\" and a value in quotes were expected behind \"" + key + "\"", {});
        const char quote = m_text[m_at++];
        std::string value;
        for (; m_at < m_text.size() && m_text[m_at] != quote; ++m_at) {
            const char c = m_text[m_at];
            if (c == '<' || (static_cast<unsigned char>(c) < 0x20 && !isSpace(c)))
                return problem(
                    ErrorCode::InvalidInput, "the value of \"" + key + "\" has what no value may have", {});
            if (c != '&') {
                value += c;
                continue;
            }
            TRY(const char known, entity());
            value += known;
        }
        if (m_at == m_text.size())
            return problem(ErrorCode::InvalidInput, "the value of \"" + key + "\" does not end",
                "the file may have been cut off");
        ++m_at;
        return value;
    }

    /// The letter of one of the five entities that every file has; stands on its last letter behind.
    Result<char> entity()
    {
        static constexpr std::pair<std::string_view, char> kEntities[]{
            {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
        for (const auto &[word, letter] : kEntities)
            if (begins(word)) {
                m_at += word.size() - 1;
                return letter;
            }
        return problem(ErrorCode::InvalidInput,
            "entities of a file's own and references to characters are not read",
            "write the letters themselves");
    }

    Result<void> close()
    {
        m_at += 2;
        const std::string closed = name();
        skipSpace();
        if (m_open.empty() || m_elements[m_open.back()].name != closed)
            return problem(ErrorCode::InvalidInput,
                m_open.empty() ? "</" + closed + "> closes what was not opened"
                               : "</" + closed + "> closes <" + m_elements[m_open.back()].name + "> of line "
                        + std::to_string(m_elements[m_open.back()].line),
                {});
        if (!begins(">"))
            return problem(ErrorCode::InvalidInput, "\">\" was expected behind </" + closed,
                "the file may have been cut off");
        ++m_at;
        m_open.pop_back();
        return {};
    }

    std::string_view m_text{};
    std::size_t m_at = 0;
    std::size_t m_counted = 0; ///< Letters whose lines are counted.
    std::int32_t m_line = 1;
    std::vector<XmlElement> m_elements{};
    std::vector<std::size_t> m_open{}; ///< Indices of elements, the innermost last.
};

} // namespace

Result<std::vector<XmlElement>> readXml(std::string_view text)
{
    return XmlReader(text).read();
}

} // namespace planloom
