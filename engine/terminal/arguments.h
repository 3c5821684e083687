#pragma once

#include "engine/base/result.h"
#include "engine/terminal/program.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The words of a command, checked against its verb.
///
/// Options are `--name`, `--name value` or `--name=value`, in any place before `--`, behind which every word
/// is positional. `-h` is `--help`.
class Arguments
{
public:
    /// @return InvalidInput naming the word that does not fit, and what does
    static Result<Arguments> parse(
        const ProgramSpec &program, const VerbSpec &verb, const std::vector<std::string> &words);

    const std::string &positional(std::size_t index = 0) const { return m_positional[index]; }
    /// All of them: of a verb whose last one may be repeated.
    const std::vector<std::string> &positionals() const { return m_positional; }
    bool has(std::string_view option) const;
    std::string text(std::string_view option, std::string_view fallback = {}) const;
    /// Every value of an option that may be repeated.
    std::vector<std::string> texts(std::string_view option) const;
    /// @return InvalidInput if it is no integer from `least` to `most`
    Result<std::int64_t> integer(
        std::string_view option, std::int64_t fallback, std::int64_t least, std::int64_t most) const;
    Result<double> real(std::string_view option, double fallback) const;

private:
    std::vector<std::string> m_positional{}; ///< As many as the verb names, unless its help is asked for.
    std::multimap<std::string, std::string, std::less<>> m_options{};
};

/// The verb of this name. @return InvalidInput with the nearest name
Result<const VerbSpec *> findVerb(const ProgramSpec &program, const std::string &name);

/// "--tabel is no option of solve", with the nearest name.
Error unknownOption(const ProgramSpec &program, const VerbSpec &verb, const std::string &word);

} // namespace planloom
