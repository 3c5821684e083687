#pragma once

#include <vector>

namespace planloom {

/// Of a stage, with weights that replicas have parts of: what is launched together.
struct TrafficLayer {
    struct Reading { ///< Of some weights, by operators that follow one another.
        double share = 0; ///< Of what a pass computes: until others are read.
        double gather = 0; ///< Seconds, as the next.
        double reduce = 0;
    };
    double gather = 0; ///< Of all.
    double reduce = 0;
    std::vector<Reading> readings{}; ///< In the order of the forward pass.
};
struct PassTraffic { ///< What a pass sends.
    bool gathers = false;
    bool reduces = false;
    bool asMade = false; ///< A gradient is reduced when it is made, not when all of its layer are.
};

/// Seconds of a forward pass that gathers layers' weights beside what it computes. While one layer runs, the
/// next one's weights come, and no others: where layers differ, some wait for theirs though others have time
/// to spare. Each operator waits for its own alone.
/// @param computed  seconds, but for waiting
double forwardSeconds(const std::vector<TrafficLayer> &layers, double computed);
/// Likewise of a backward pass; in the same queue the gradients of the layer before are reduced, to be added
/// up when that which runs is done.
double backwardSeconds(const std::vector<TrafficLayer> &layers, double computed, PassTraffic sent);

} // namespace planloom
