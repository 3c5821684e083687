#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom::cli {

/// Options of a verb: which there are, and whether they take a value.
struct OptionSpec {
    std::string name{}; ///< Without the dashes.
    std::string value{}; ///< Name of its value in the help; empty for a switch.
    std::string meaning{};
};

/// A verb, as `planloom-cli VERB POSITIONAL [options]`.
struct VerbSpec {
    std::string name{};
    std::string positional{}; ///< "MODEL", "PLAN", "FILE"; several words for several of them.
    std::string meaning{};
    std::vector<OptionSpec> options{};
};

/// The words of a command, checked against its verb.
class Arguments
{
public:
    /// @return InvalidInput naming the word that does not fit, and what does
    static Result<Arguments> parse(const VerbSpec &verb, const std::vector<std::string> &words);

    const std::string &positional(std::size_t index = 0) const { return m_positional[index]; }
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

/// All verbs, in the order of the help.
const std::vector<VerbSpec> &verbs();
/// The help of one verb, or of all.
std::string helpOf(const VerbSpec &verb);
std::string help();

} // namespace planloom::cli
