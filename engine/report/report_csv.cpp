#include "engine/report/report_csv.h"

#include "engine/base/csv.h"

#include <cstdio>
#include <limits>

namespace planloom {

std::string communicationCsv(const std::vector<CommunicationLine> &lines)
{
    std::string csv =
        "kind,queue,link,groups,group_size,members,algorithm,protocol,bytes,count,alone_ns,time_ns,"
        "exposed_ns,bus_bandwidth,first_start_ns,passes\r\n";
    for (const CommunicationLine &line : lines) {
        char bandwidth[32];
        std::snprintf(bandwidth, sizeof bandwidth, "%.0f", busBandwidthOf(line));
        csv += csvLine({nameOf(line.kind), nameOf(line.queue), line.link, std::to_string(line.groupCount),
            std::to_string(line.shape.ranks), groupWords(line, std::numeric_limits<std::size_t>::max()),
            line.choice ? nameOf(line.choice->algorithm) : "",
            line.choice ? nameOf(line.choice->protocol) : "", std::to_string(line.bytes.count),
            std::to_string(line.count), std::to_string(line.alone.count()), std::to_string(line.time.count()),
            std::to_string(line.exposed.count()), bandwidth, std::to_string(line.starts.front().count()),
            passWords(line)});
    }
    return csv;
}

std::string ranksCsv(const std::vector<RankMemory> &ranks)
{
    std::vector<std::string> heading{"rank", "peak_bytes", "limit_bytes", "fits"};
    for (std::size_t k = 0; k < kHeldAsCount; ++k)
        heading.push_back(std::string(keyOf(static_cast<HeldAs>(k))) + "_bytes");
    std::string csv = csvLine(heading);
    for (const RankMemory &rank : ranks) {
        std::vector<std::string> cells{std::to_string(rank.rank.index), std::to_string(rank.peak),
            std::to_string(rank.limit), rank.fits() ? "1" : "0"};
        for (const std::int64_t bytes : rank.held)
            cells.push_back(std::to_string(bytes));
        csv += csvLine(cells);
    }
    return csv;
}

} // namespace planloom
