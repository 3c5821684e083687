#pragma once

#include "engine/base/result.h"
#include "engine/traces/reading/trace_bytes.h"
#include "engine/traces/trace.h"

#include <stop_token>
#include <string>

namespace planloom {

/// Reads what torch.profiler writes (Chrome's trace format with Kineto's categories and arguments), also
/// where it was cut off: what stands before is read, and a remark says where it ends.
///
/// Safe for any bytes: memory is bounded by a multiple of the bytes, unpacked. Events that can't be are left
/// out with a remark.
/// @param where  named in errors and remarks
/// @return InvalidInput if no event can be read; ResourceLimit; Cancelled; Io. O(bytes)
Result<RankTrace> readKineto(TraceBytes &bytes, const std::string &where, const std::stop_token &stop = {});

/// The events in some stretches of the file, from its beginning to its end: a first picture of a file of any
/// size in about the same time. Of a packed file, those at its beginning.
Result<RankTrace> sampleKineto(TraceBytes &bytes, const std::string &where, const std::stop_token &stop = {});

} // namespace planloom
