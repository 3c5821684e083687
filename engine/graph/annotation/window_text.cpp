#include "engine/graph/annotation/window_text.h"

#include "engine/base/text.h"

namespace planloom {

namespace {

bool isLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Reads one description after the other; the first fault ends it.
class WindowReader
{
public:
    WindowReader(std::string_view text, std::size_t at)
        : m_text(text)
        , m_at(at)
    {
    }

    std::optional<TextFault> read(Annotation &annotation)
    {
        while (!m_fault && takes(";"))
            readOne(annotation);
        skipSpaces();
        if (m_at != m_text.size())
            fail(m_at, std::string("unexpected '") + m_text[m_at] + "'");
        return m_fault;
    }

private:
    void fail(std::size_t position, std::string message)
    {
        if (!m_fault)
            m_fault = TextFault{position, std::move(message)};
    }

    void skipSpaces()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n'))
            ++m_at;
    }

    bool takes(std::string_view word)
    {
        skipSpaces();
        if (m_text.substr(m_at, word.size()) != word)
            return false;
        m_at += word.size();
        return true;
    }

    void require(std::string_view word, const char *what)
    {
        if (!takes(word))
            fail(m_at, "expected '" + std::string(word) + "' and " + what);
    }

    std::int64_t number()
    {
        skipSpaces();
        const std::size_t start = m_at;
        const bool negative = m_at < m_text.size() && m_text[m_at] == '-';
        m_at += negative ? 1 : 0;
        const std::size_t digits = m_at;
        std::int64_t value = 0;
        for (; m_at < m_text.size() && isDigit(m_text[m_at]) && value <= kFarthestWindow; ++m_at)
            value = value * 10 + (m_text[m_at] - '0');
        if (value > kFarthestWindow)
            fail(start, "this number is too large");
        else if (m_at == digits)
            fail(start, "expected a number");
        return negative ? -value : value;
    }

    void readOne(Annotation &annotation)
    {
        skipSpaces();
        const std::size_t start = m_at;
        while (m_at < m_text.size() && (isLetter(m_text[m_at]) || isDigit(m_text[m_at])))
            ++m_at;
        const auto known = findDimension(annotation, m_text.substr(start, m_at - start));
        if (!known || findWindow(annotation, *known))
            return fail(start, "expected an identifier whose windows were not described yet");
        Window window{.dimension = *known};
        require(":", "the size of the windows");
        window.kernel = number();
        require("by", "the distance of the windows");
        window.stride = number();
        if (takes("dilated"))
            window.dilation = number();
        require("at", "where the first window begins");
        window.pad = -number();
        require("of", "the number of elements");
        window.extent = number();
        annotation.windows.push_back(window);
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    std::optional<TextFault> m_fault{};
};

} // namespace

void appendWindows(std::string &text, const Annotation &annotation)
{
    for (const Window &window : annotation.windows) {
        text += "; " + annotation.dimensions[static_cast<std::size_t>(window.dimension)].name + ": "
            + std::to_string(window.kernel) + " by " + std::to_string(window.stride);
        if (window.dilation != 1)
            text += " dilated " + std::to_string(window.dilation);
        text += " at " + std::to_string(-window.pad) + " of " + std::to_string(window.extent);
    }
}

std::optional<TextFault> readWindows(std::string_view text, std::size_t at, Annotation &annotation)
{
    return WindowReader(text, at).read(annotation);
}

} // namespace planloom
