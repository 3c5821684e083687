#pragma once

namespace planloom {

/// Whether what is communicated, or copied, together is as much as one launch is to take: more of it would
/// hardly use the links better, and would start later. As every framework does (PyTorch DDP,
/// arXiv:2006.15704, section 3.2.3), a bucket is closed once it is large: here, once its latency is less than
/// a tenth of its time.
/// @param latency  seconds that a launch of nothing takes; where that is 0, no bucket of 0 seconds is full
/// @param seconds  that a launch of what is in the bucket takes
constexpr bool isFullBucket(double latency, double seconds)
{
    constexpr double kLatencyShare = 0.1;
    return latency < kLatencyShare * seconds;
}

} // namespace planloom
