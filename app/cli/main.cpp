#include "app/cli/commands.h"
#include "app/cli/without_effect.h"

#include "engine/base/place.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

using namespace planloom;
using namespace planloom::cli;

namespace {

int exitStatusOf(ErrorCode code)
{
    switch (code) {
    case ErrorCode::Conflict:
        return 3;
    case ErrorCode::CheckFailed:
    case ErrorCode::Cancelled:
    case ErrorCode::Internal:
        return 1;
    default:
        return 2;
    }
}

int report(const Error &error, bool asJson)
{
    Error shown = error;
    shown.where = placeWords(placeOf(error));
    std::cerr << "planloom-cli: " << describe(shown) << "\n";
    const int status = exitStatusOf(error.code);
    if (asJson) {
        nlohmann::json object{
            {"error", {{"message", error.message}, {"advice", error.advice}, {"where", error.where}}}};
        if (status == 3) {
            object["conflict"] = nlohmann::json::array();
            const Place place = placeOf(error);
            if (const auto *row = std::get_if<RowPlace>(&place))
                object["conflict"].push_back(row->row.index); // from 0
        }
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    }
    return status;
}

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty() || words[0] == "--help" || words[0] == "help") {
        std::cout << help();
        return words.empty() ? 2 : 0;
    }
    const auto verb = std::find_if(
        verbs().begin(), verbs().end(), [&](const VerbSpec &spec) { return spec.name == words[0]; });
    if (verb == verbs().end()) {
        std::cerr << "planloom-cli: \"" << words[0] << "\" is no verb\n\n" << help();
        return 2;
    }
    const bool asJson = std::find(words.begin(), words.end(), "--json") != words.end();
    const auto arguments = Arguments::parse(*verb, {words.begin() + 1, words.end()});
    if (!arguments)
        return report(arguments.error(), asJson);
    if (arguments->has("help")) {
        std::cout << helpOf(*verb);
        return 0;
    }
    if (const auto effects = checkEffects(*verb, *arguments); !effects)
        return report(effects.error(), asJson);
    using Command = Result<int> (*)(const Arguments &);
    const std::pair<const char *, Command> commands[]{{"info", runInfo}, {"solve", runSolve},
        {"schedule", runSchedule}, {"simulate", runSimulate}, {"fits", runFits}, {"compare", runCompare},
        {"verify", runVerify}, {"run", runRun}, {"check-annotation", runCheckAnnotation},
        {"export", runExport}, {"gallery", runGallery}, {"rows", runRows}, {"cluster", runCluster},
        {"session", runSession}};
    for (const auto &[name, command] : commands) {
        if (verb->name != name)
            continue;
        const auto status = command(*arguments);
        if (!status)
            return report(status.error(), asJson);
        std::cout.flush();
        if (!std::cout)
            return report({ErrorCode::Io, "standard output cannot be written", {}, "stdout"}, false);
        return *status;
    }
    return 2;
}
