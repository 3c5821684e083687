#pragma once

#include "engine/base/result.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/runtime/run.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

struct RankStart;

/// How a supervised run is watched.
struct SuperviseOptions {
    /// Where a line "cancel", or "finish", may arrive, as on standard input; -1 for nowhere. Its end is no
    /// cancel. "finish" ends the run behind the step it is in, with its checkpoint if it writes any.
    int controlDescriptor = -1;
    /// Cancel on SIGINT and SIGTERM, which are held back from the calling thread meanwhile; a run that writes
    /// checkpoints is finished by the first SIGINT, and cancelled by the second.
    bool signals = false;
    /// Silence longer than this, and than 20 predicted steps, is a stall.
    double stallSeconds = 10;
    /// What each rank's process does, and its exit status; empty for `rankMain`.
    std::function<int(const RankStart &)> rank{};
};

/// What a supervised run ended with.
struct SuperviseOutcome {
    std::int64_t firstStep = 0; ///< As `RunOutcome` has these three.
    std::string checkpoint{};
    bool stopped = false;
    std::vector<double> losses{};
    std::vector<double> stepSeconds{};
    std::vector<std::int64_t> dropped{}; ///< As `RunOutcome` has it.
    std::vector<Bytes> peak{};
    std::optional<CheckReport> check{}; ///< If the request had a reference.
};

/// Takes one event (see event_json.h) as a line of JSON without its newline; false if nobody reads it any
/// more, which cancels the run.
using EventSink = std::function<bool(const std::string &line)>;

/// Runs `request` in `request.ranks` processes, forked from this one, and reports its events until all have
/// ended. Each is joined by a socket pair that carries length-prefixed frames: nothing to authenticate, no
/// port to find; ranks on other machines will use the same frames over TCP. What ranks hand each other goes
/// through memory that they share (process_world.h).
///
/// - Progress of the devices, read from shared memory, is reported 5 times a second while it changes; "alive"
///   once a second, so that a reader who is gone is noticed.
/// - A rank that dies ends the run, reported within a second with the last instruction of each of its
/// devices.
/// - A rank that runs another plan than this one (`runDigest`) ends the run.
/// - Silence is reported as "stalled", once, with who holds up whom. So is a rank that does not answer for
///   `stallSeconds`.
/// - Cancel works in stages: ask; after 1 s SIGTERM; after another 0.5 s SIGKILL. Other ranks are ended the
/// same
///   way once one has failed. Ranks die with their supervisor, and leave nothing behind that has a name.
///
/// The calling process must have no other threads that hold locks (ranks are forks without exec).
/// @return the first error of a rank, also sent as an event; Cancelled; Internal if a rank died,
/// ResourceLimit if the system killed it for its memory; Io
Result<SuperviseOutcome> superviseRun(const RunRequest &request, const SuperviseOptions &options,
    const EventSink &sink, std::stop_token stop = {});

} // namespace planloom
