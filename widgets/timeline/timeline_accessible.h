#pragma once

namespace planloom {

/// Makes timelines known to screen readers: lanes as children, and in the lane that has the focus what the
/// keyboard is at, in a sentence. Once is enough; more does nothing.
void installTimelineAccessibility();

} // namespace planloom
