#pragma once

namespace planloom {

/// The calling thread runs behind others from now on, where there are no processors to spare: people look at
/// what those do.
void giveWay();

} // namespace planloom
