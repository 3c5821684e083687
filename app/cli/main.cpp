#include "app/cli/commands.h"
#include "app/cli/verbs.h"
#include "app/cli/without_effect.h"

#include "engine/base/place.h"
#include "engine/terminal/exit_status.h"
#include "engine/terminal/help.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

using namespace planloom;
using namespace planloom::cli;

namespace {

int report(const Error &error, bool asJson)
{
    Error shown = error;
    shown.where = placeWords(placeOf(error));
    std::cerr << "planloom-cli: " << describe(shown) << "\n";
    const int status = exitStatusOf(error.code);
    if (asJson) {
        nlohmann::json object{
            {"error", {{"message", error.message}, {"advice", error.advice}, {"where", error.where}}}};
        if (status == kExitConflict) {
            object["conflict"] = nlohmann::json::array();
            const Place place = placeOf(error);
            if (const auto *row = std::get_if<RowPlace>(&place))
                object["conflict"].push_back(row->row.index); // from 0
        }
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    }
    return status;
}

/// What was printed has arrived: a full disk is no success.
int ended(int status)
{
    std::cout.flush();
    const bool isWritten = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (isWritten || status == kExitFailed)
        return status;
    return report({ErrorCode::Io, "standard output cannot be written",
                      "check that its disk has room and that its reader is still there", "stdout"},
        false);
}

Result<int> runVerb(const VerbSpec &verb, const Arguments &arguments)
{
    TRY_VOID(checkEffects(verb, arguments));
    using Command = Result<int> (*)(const Arguments &);
    const std::pair<const char *, Command> commands[]{{"info", runInfo}, {"solve", runSolve},
        {"schedule", runSchedule}, {"simulate", runSimulate}, {"fits", runFits},
        {"communication", runCommunication}, {"report", runReport}, {"compare", runCompare},
        {"verify", runVerify}, {"run", runRun}, {"check-annotation", runCheckAnnotation},
        {"import", runImport}, {"export", runExport}, {"trace", runTrace}, {"gallery", runGallery},
        {"rows", runRows}, {"cluster", runCluster}, {"session", runSession}, {"doctor", runDoctor},
        {"lesson", runLesson}};
    for (const auto &[name, command] : commands)
        if (verb.name == name)
            return command(arguments);
    return Error{ErrorCode::Internal, "the verb " + verb.name + " has no command", {}, {}};
}

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
        std::cerr << "planloom-cli: a verb is missing\n\n" << helpOf(program(), terminalWidth());
        return kExitUsage;
    }
    if (const auto answer = answerOf(program(), words)) {
        std::cout << *answer;
        return ended(kExitDone);
    }
    // Behind "--" it is a file.
    const auto last = std::find(words.begin(), words.end(), "--");
    const bool asJson = std::find(words.begin(), last, "--json") != last;
    const bool isHelp = words[0] == "help" && words.size() > 1;
    const auto verb = findVerb(program(), words[isHelp ? 1 : 0]);
    if (!verb)
        return report(verb.error(), asJson);
    const auto arguments = Arguments::parse(program(), **verb, {words.begin() + 1, words.end()});
    if (!arguments)
        return report(arguments.error(), asJson);
    if (arguments->has("help") || arguments->has("version")) {
        std::cout << (arguments->has("help") ? helpOf(program(), **verb, terminalWidth())
                                             : *answerOf(program(), {"--version"}));
        return ended(kExitDone);
    }
    const auto status = runVerb(**verb, *arguments);
    return status ? ended(*status) : report(status.error(), asJson);
}
