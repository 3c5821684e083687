#include "engine/search/partition/operator_times.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// What a pass waits for, operator by operator, as its two queues run: what is computed, and communication in
/// the order in which it is read, each beside the other.
class TwoQueues
{
public:
    explicit TwoQueues(std::size_t operators)
        : m_end(operators, 0)
    {
    }

    /// That `by` made, and the next operator reads.
    void send(std::size_t by, double seconds)
    {
        m_sent = std::max(m_sent, m_end[by]) + seconds;
        m_arrives = std::max(m_arrives, m_sent);
    }
    /// The next operator. @param behind  seconds that it computes when all is made that others wait for
    /// @return seconds that it waits
    double run(std::size_t op, double seconds, double behind = 0)
    {
        const double waits = std::max(0.0, m_arrives - m_computed);
        m_end[op] = m_computed + waits + seconds;
        m_computed = m_end[op] + behind;
        m_arrives = 0;
        return waits;
    }

private:
    std::vector<double> m_end; ///< By operator.
    double m_computed = 0;
    double m_sent = 0;
    double m_arrives = 0; ///< All that the next operator reads.
};

} // namespace

void OperatorTimes::addWaits(const OperatorTimes &waits)
{
    for (std::size_t i = 0; i < waits.forward.size(); ++i) {
        forward[i] += waits.forward[i];
        backward[i] += waits.backward[i];
    }
}

OperatorTimes timesOf(const PartitionProblem &problem, const std::vector<std::int32_t> &choice,
    const std::vector<double> &shares)
{
    const std::size_t operators = problem.operatorCount();
    OperatorTimes times;
    for (std::size_t i = 0; i < operators; ++i) {
        const OperatorChoice &own = problem.choiceOf(i, choice[i]);
        times.forward.push_back(own.forward);
        times.backward.push_back(own.backward);
    }
    std::vector<double> waitsForward(operators, 0); // for communication, at least as bounds count it
    std::vector<double> waitsBackward(operators, 0);
    using Sent = std::vector<std::pair<std::size_t, double>>; // by whom made, seconds
    std::vector<Sent> sent(operators); // by who reads it
    std::vector<Sent> sentBack(operators);
    for (Meeting meeting : problem.meetings()) {
        const OperatorChoice *producer = problem.producerOf(meeting, choice);
        if (!producer)
            continue;
        if (!shares.empty())
            for (std::int64_t *bytes : {&meeting.bytes, &meeting.gradientBytes})
                *bytes = static_cast<std::int64_t>(static_cast<double>(*bytes) * shares[at(meeting.tensor)]);
        const MeetingMoves::Readers readers = problem.readersOf(meeting, choice);
        const std::size_t p = at(meeting.producer);
        const std::size_t f = at(meeting.firstReader());
        const Moving ahead = problem.moves().forward(meeting, readers, *producer);
        const Moving back = problem.moves().backward(meeting, readers, *producer);
        times.forward[f] += ahead.copied;
        times.backward[p] += back.copied;
        waitsForward[f] += std::max(0.0, ahead.sent - meeting.beforeRead);
        waitsBackward[p] += std::max(0.0, back.sent - meeting.beforeReadBack);
        times.communication += ahead.copied + back.copied;
        if (ahead.sent > 0)
            sent[f].emplace_back(p, ahead.sent);
        if (back.sent > 0)
            sentBack[p].emplace_back(f, back.sent);
    }
    // What is read first is sent first: it holds up what was made before and could be on its way.
    TwoQueues ahead(operators);
    for (std::size_t i = 0; i < operators; ++i) {
        for (const auto &[by, seconds] : sent[i])
            ahead.send(by, seconds);
        waitsForward[i] = std::max(waitsForward[i], ahead.run(i, times.forward[i]));
    }
    TwoQueues back(operators);
    for (std::size_t i = operators; i-- > 0;) {
        for (const auto &[by, seconds] : sentBack[i])
            back.send(by, seconds);
        waitsBackward[i] = std::max(waitsBackward[i],
            back.run(i, times.backward[i], problem.accumulationSeconds(i, problem.choiceOf(i, choice[i]))));
    }
    times.addWaits({waitsForward, waitsBackward});
    for (std::size_t i = 0; i < operators; ++i)
        times.communication += waitsForward[i] + waitsBackward[i];
    return times;
}

double apartSeconds(
    const PartitionProblem &problem, std::size_t op, std::int32_t choice, const OperatorTimes &times)
{
    return problem.makesWeightsAlone(op) ? times.backward[op] : problem.choiceOf(op, choice).weightGradients;
}

} // namespace planloom
