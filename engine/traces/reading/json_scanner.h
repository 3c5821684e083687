#pragma once

#include "engine/base/result.h"
#include "engine/traces/reading/trace_bytes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

enum class JsonToken : std::uint8_t {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Key, ///< Of an object: its value follows.
    String,
    Number,
    Word, ///< true, false, null, and NaN or Infinity, which some writers have although JSON does not.
    End, ///< Of the text, or where it can't be read on: `failure()`.
};

/// JSON token by token, of a text of any size: for files of which little is wanted. Memory is a block and the
/// longest token that is asked for.
///
/// It is a scanner, not a judge: commas and colons only separate. What is never asked for may be anything, as
/// long as strings and brackets end. Not thread-safe.
class JsonScanner
{
public:
    /// @param where  named in errors
    JsonScanner(TraceBytes &bytes, std::string where);

    JsonToken next();
    /// Letters of the last key, string, number or word, as they stand: escapes are not undone. Until the next
    /// call of anything.
    std::string_view text() const { return {m_buffer.data() + m_textBegin, m_textEnd - m_textBegin}; }
    /// The same, with escapes undone; bytes that are no UTF-8 become U+FFFD.
    std::string plainText() const;

    /// Passes the value that comes next by. @return false where it does not end
    bool skipValue();
    /// Passes by what is left of the object or array that is open. @return as above
    bool skipRest();
    /// Passes letters by until an object begins whose first key is `key`, and goes back to its beginning: a
    /// place to begin with in the middle of a text. @return false if none comes
    bool findObject(std::string_view key);

    /// Of the next letter, in the unpacked text.
    std::uint64_t offset() const { return m_passed + m_at; }
    /// How many objects and arrays are open.
    std::size_t depth() const { return m_open.size(); }
    /// Why it ended early: null if it did not. InvalidInput; ResourceLimit for tokens or nesting beyond all
    /// measure; Io
    const Error *failure() const { return m_failure ? &*m_failure : nullptr; }

private:
    bool fill(std::size_t &kept);
    bool readOn();
    bool has() { return m_at < m_end || readOn(); }
    JsonToken fail(ErrorCode code, std::string message);
    JsonToken readString(bool isKey);
    bool passString();
    bool passOpen(std::size_t depth);

    TraceBytes &m_bytes;
    std::string m_where;
    std::vector<char> m_buffer;
    std::size_t m_at = 0;
    std::size_t m_end = 0;
    std::size_t m_textBegin = 0;
    std::size_t m_textEnd = 0;
    std::uint64_t m_passed = 0; ///< Letters in front of the buffer.
    std::vector<char> m_open; ///< Brackets of what is open, outermost first.
    bool m_expectsKey = false;
    bool m_hasEnded = false; ///< The bytes have.
    std::optional<Error> m_failure{};
};

/// `text` with JSON's escapes undone; what is no UTF-8 becomes U+FFFD.
std::string unescapedJson(std::string_view text);

} // namespace planloom
