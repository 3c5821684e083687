#pragma once

#include "engine/traces/reading/kineto_event.h"
#include "engine/traces/trace_builder.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Puts the events of a Kineto trace together as what its rank did: what ran on the device, with the call of
/// the host that launched it; or, where nothing did, the outermost operators of each of the host's threads
/// and the collectives beside them. Not thread-safe.
class KinetoAssembly
{
public:
    /// @param where  the file, for remarks
    explicit KinetoAssembly(std::string where);

    /// @param place  byte of the file
    void take(const KinetoEvent &event, std::uint64_t place);
    void setRank(std::int64_t rank, std::int64_t world);
    void setHost(std::string host) { m_builder.trace().host = std::move(host); }
    /// A process group of the run: completes what events say of it, and is that of those which say none where
    /// the run has no other.
    void addKnownGroup(const TraceGroup &group);
    /// Nanoseconds that all times are after.
    void setBase(std::int64_t base) { m_base = base; }
    RankTraceBuilder &builder() { return m_builder; }
    bool isEmpty() const { return m_builder.eventCount() == 0 && m_operators.empty(); }

    RankTrace finish() &&;

private:
    /// An operator on the host.
    struct HostOperator {
        TraceEvent event{};
        std::int64_t external = -1;
        std::uint64_t place = 0;
        bool saysCollective = false; ///< It only says what a collective is like, and takes no time itself.
    };
    /// A device's event that waits for what the host knows of it.
    struct Waiting {
        std::size_t event = 0; ///< Index into the builder's.
        std::int64_t correlation = -1;
        std::int64_t external = -1;
    };

    void takeDevice(const KinetoEvent &event, std::uint64_t place);
    void takeHost(const KinetoEvent &event, std::uint64_t place);
    std::uint32_t collectiveOf(const KinetoEvent &event);
    void joinLaunches();
    void keepHostOperators();
    void describeHostCollectives();
    void completeGroups();

    RankTraceBuilder m_builder;
    std::vector<HostOperator> m_operators;
    std::vector<Waiting> m_waiting;
    std::vector<std::pair<std::int64_t, std::int64_t>> m_calls; ///< Correlation and start of runtime calls.
    std::vector<TraceGroup> m_groups; ///< Of the run.
    std::int64_t m_base = 0;
};

/// Whether a kernel or an operator communicates, by its name.
bool isCommunicationName(std::string_view name);

} // namespace planloom
