#include "engine/runtime/event_json.h"
#include "engine/runtime/supervisor.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace planloom;

namespace {

constexpr const char *kUsage =
    "planloom-exec run --plan FILE --options FILE\n"
    "\n"
    "Runs an execution plan on CPU devices in a process of its own. Events are written to\n"
    "standard output, one JSON object a line. A line \"cancel\" on standard input, SIGINT or\n"
    "SIGTERM end the run.\n"
    "Exit status: 0 done, 1 the run failed, 2 wrong usage or bad input.\n";

bool writeLine(const std::string &line)
{
    const std::string text = line + "\n";
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        done += static_cast<std::size_t>(written);
    }
    return true;
}

int statusOf(const Error &error)
{
    switch (error.code) {
    case ErrorCode::InvalidInput:
    case ErrorCode::NotSupported:
    case ErrorCode::NotFound:
        return 2;
    default:
        return 1;
    }
}

int usage(const std::string &problem)
{
    std::fprintf(stderr, "planloom-exec: %s\n\n%s", problem.c_str(), kUsage);
    return 2;
}

} // namespace

int main(int argc, char **argv)
{
    std::signal(SIGPIPE, SIG_IGN); // a reader that is gone is an error of write()
    std::map<std::string, std::string> given;
    if (argc < 2)
        return usage("a verb is missing");
    if (std::string_view{argv[1]} == "--help") {
        std::fputs(kUsage, stdout);
        return 0;
    }
    if (std::string_view{argv[1]} != "run")
        return usage(std::string{"unknown verb "} + argv[1]);
    for (int i = 2; i < argc; i += 2) {
        const std::string name = argv[i];
        if (name != "--plan" && name != "--options")
            return usage("unknown option " + name);
        if (i + 1 == argc)
            return usage(name + " needs a file");
        given[name] = argv[i + 1];
    }
    if (!given.contains("--plan") || !given.contains("--options"))
        return usage("--plan and --options are needed");
    const auto request = readRunFolder(given["--plan"], given["--options"]);
    if (!request) {
        writeLine(errorEvent(request.error()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        std::fprintf(stderr, "planloom-exec: %s\n", describe(request.error()).c_str());
        return statusOf(request.error());
    }
    const SuperviseOptions options{.controlDescriptor = STDIN_FILENO, .signals = true};
    const auto outcome = superviseRun(*request, options, writeLine);
    if (!outcome) {
        std::fprintf(stderr, "planloom-exec: %s\n", describe(outcome.error()).c_str());
        return statusOf(outcome.error());
    }
    return outcome->check && !outcome->check->ok ? 1 : 0;
}
