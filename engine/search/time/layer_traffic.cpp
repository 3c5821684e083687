#include "engine/search/time/layer_traffic.h"

#include <algorithm>
#include <utility>

namespace planloom {

double forwardSeconds(const std::vector<TrafficLayer> &layers, double computed)
{
    double sent = 0; // all that was given to the queue
    double before = 0; // when that layer ended behind which weights may come
    double end = layers.empty() ? computed : 0;
    for (const TrafficLayer &layer : layers) {
        sent = std::max(sent, before);
        before = end;
        for (const TrafficLayer::Reading &each : layer.readings) {
            sent += each.gather;
            end = std::max(end, sent) + computed * each.share;
        }
    }
    return end;
}

double backwardSeconds(const std::vector<TrafficLayer> &layers, double computed, PassTraffic sent)
{
    double queue = 0; // all that was given to it
    double before = 0; // when that layer ended behind which weights may come
    double end = layers.empty() ? computed : 0;
    struct Made { // of the layer before
        double at = 0;
        double reduce = 0;
    };
    std::vector<Made> made;
    const auto reduce = [&] {
        for (const Made &each : made)
            queue = std::max(queue, sent.asMade ? each.at : end) + each.reduce;
    };
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
        queue = std::max(queue, before);
        before = end;
        double now = end;
        std::vector<Made> own;
        for (auto each = layer->readings.rbegin(); each != layer->readings.rend(); ++each) {
            queue += sent.gathers ? each->gather : 0;
            now = std::max(now, queue) + computed * each->share;
            if (sent.reduces)
                own.push_back({now, each->reduce});
        }
        const bool isReduced = !made.empty();
        reduce();
        end = isReduced ? std::max(now, queue) : now;
        made = std::move(own);
    }
    reduce();
    return std::max(end, queue);
}

} // namespace planloom
