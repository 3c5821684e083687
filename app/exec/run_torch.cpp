#include "app/exec/run_torch.h"

#include "engine/interop/torch/launch/torch_probe.h"
#include "engine/interop/torch/launch/torch_run.h"
#include "engine/runtime/processes/control_reader.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/process_handles.h"

#include <nlohmann/json.hpp>

#include <stop_token>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace planloom {

namespace {

/// Reads standard input until it ends, is told to cancel, or nobody wants to know any more.
void listen(const std::stop_token &done, std::stop_source &cancel)
{
    constexpr int kLookMilliseconds = 100;
    ControlReader control(STDIN_FILENO);
    while (!done.stop_requested() && control.descriptor() >= 0) {
        pollfd wait{control.descriptor(), POLLIN, 0};
        if (::poll(&wait, 1, kLookMilliseconds) <= 0)
            continue;
        for (const std::string &word : control.read())
            if (word == "cancel" || word == "finish")
                cancel.request_stop();
    }
}

} // namespace

Result<SuperviseOutcome> runTorchRequest(const RunRequest &request, const EventSink &sink)
{
    const SignalReader held(true); // before there is another thread, to which signals would go
    std::stop_source cancel;
    const std::jthread listener([&cancel](const std::stop_token &done) { listen(done, cancel); });
    auto probe = request.pythonSaid.empty() ? probeTorch(request.python, 120, cancel.get_token())
                                            : torchProbeIn(request.pythonSaid, request.python);
    if (!probe) {
        sink(errorEvent(probe.error()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        return std::move(probe).error();
    }
    return runOnTorch(request, {.probe = *std::move(probe), .signals = true}, sink, cancel.get_token());
}

} // namespace planloom
