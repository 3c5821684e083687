#pragma once

#include "engine/base/result.h"
#include "engine/graph/operator.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

class TextCursor;

/// What a node of a selector's expression asks of an operator.
enum class SelectorKind : std::uint8_t {
    All,
    Name, ///< `name:GLOB`: its name.
    Kind, ///< `kind:GLOB`: its operator kind ("Linear"), or the type in the file of an Unknown one.
    In, ///< `in:GLOB`: it lies in a module with this path, or below one.
    Layer, ///< `layer:FIRST-LAST`: it lies in one of these layers (see layers.h); `layer:*` is any.
    Direction, ///< `forward`, `backward`, `optimizer`.
    Set, ///< `set{a, b}`: its name is one of these.
    Weight, ///< `weight:GLOB`: it reads a weight with this name, or a part of it that files name so.
    And,
    Or, ///< Of two or more children.
    Not, ///< Of one child.
};

/// Which operators a row speaks of, as an expression. Text form: the atoms above, `!a`, `a & b`, `a | b` (`&`
/// binds closer), brackets. In a GLOB `*` stands for any text, `?` for any one character, and `\` takes what
/// follows literally. Names with other characters than those of a word are quoted: name:"a b".
struct Selector {
    SelectorKind kind = SelectorKind::All;
    std::string text{}; ///< The glob of Name, Kind, In and Weight.
    std::vector<std::string> names{}; ///< Of Set, at least one.
    std::int32_t firstLayer = 0; ///< Of Layer, inclusive.
    std::int32_t lastLayer = -1; ///< Of Layer, inclusive; -1 is the last one.
    Direction direction = Direction::Forward;
    std::vector<Selector> children{};
    friend bool operator==(const Selector &, const Selector &) = default;
};

/// Parses a whole text. @return InvalidInput with `where` "line:1:COLUMN" and what was expected there
Result<Selector> parseSelector(std::string_view text);

/// Parses a selector at the cursor and stops behind it. Nesting is limited to 100 brackets.
Result<Selector> parseSelector(TextCursor &cursor);

/// The text form; `parseSelector(toString(s))` equals `s`.
std::string toString(const Selector &selector);

/// True if `text` matches `glob` as described above. O(glob x text).
bool globMatches(std::string_view glob, std::string_view text);

/// True if `glob` has `*`, `?` or `\`.
bool isGlob(std::string_view glob);

/// `name` with the special characters of globs taken literally.
std::string globOf(std::string_view name);

// Short ways to write selectors in code.
Selector selectAll();
Selector selectName(std::string glob);
Selector selectSet(std::vector<std::string> names);
Selector selectLayers(std::int32_t first, std::int32_t last);
Selector selectIn(std::string path);
Selector selectAny(std::vector<Selector> alternatives); ///< At least one.
Selector selectDirection(Direction direction);

} // namespace planloom
