#include "engine/search/stages/unequal_stages.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Bounds of the maximum that are this near to one another are the same.
constexpr double kSameBound = 1e-7;

/// What is in the maximum.
double steadyOf(const PieceCost &stage, double microBatches)
{
    return microBatches * stage.seconds - stage.fill + std::max(0.0, stage.reduction - stage.hiding)
        + stage.update;
}

/// What no longer stage falls below: what its reductions are hidden behind grows.
double leastSteadyOf(const PieceCost &stage, double microBatches)
{
    return microBatches * stage.seconds - stage.fill + stage.update;
}

/// @param behind  stages from this one to the last
double heldBy(const PieceCost &stage, std::size_t behind, std::int32_t microBatches)
{
    return stage.bytes
        + stage.kept * static_cast<double>(std::min(behind, static_cast<std::size_t>(microBatches)));
}

/// The least sums under bounds of the maximum.
class LeastSums
{
public:
    explicit LeastSums(const UnequalSetting &setting)
        : m_setting(setting)
        , m_pieces(setting.kinds.front().pieces.size())
        , m_devices(setting.startsAt.size())
        , m_stages(std::min({m_pieces, m_devices, static_cast<std::size_t>(setting.mostStages)}))
        , m_microBatches(setting.microBatches)
    {
        // Without the number of stages behind it a state stands for all of them.
        const bool isRoom =
            std::all_of(setting.kinds.begin(), setting.kinds.end(), [this](const GroupKind &kind) {
                PieceCost all;
                for (const PieceCost &piece : kind.pieces)
                    all += piece;
                return heldBy(all, m_stages, m_setting.microBatches) <= m_setting.room;
            });
        m_countsStages = !isRoom || m_stages < std::min(m_pieces, m_devices);
    }

    struct Answer {
        double sum = 0;
        double most = 0; ///< The maximum that it has.
        std::vector<UnequalStage> stages{};
    };

    /// @param most  of the maximum; @return nothing where there are no such stages
    std::optional<Answer> within(double most)
    {
        const std::size_t layers = m_countsStages ? m_stages + 1 : 1;
        m_states.assign(layers * (m_pieces + 1) * (m_devices + 1), {});
        for (std::size_t f = 0; f <= m_devices; ++f)
            state(0, m_pieces, f).sum = 0;
        for (std::size_t behind = m_countsStages ? 1 : 0; behind < layers; ++behind)
            for (std::size_t first = m_pieces; first-- > 0;)
                for (std::size_t f = m_devices; f-- > 0;)
                    settle(behind, first, f, most);
        std::size_t best = 0;
        for (std::size_t behind = 1; behind < layers; ++behind)
            if (state(behind, 0, 0).sum < state(best, 0, 0).sum)
                best = behind;
        if (state(best, 0, 0).sum == kNever)
            return std::nullopt;
        return followed(best);
    }

private:
    struct State { ///< The pieces from one on, on devices from one on.
        double sum = kNever;
        std::int32_t kind = -1; ///< Of the first stage's group,
        std::int32_t device = -1; ///< which begins here,
        std::int32_t end = -1; ///< and the piece that the next stage begins with.
    };

    State &state(std::size_t behind, std::size_t first, std::size_t device)
    {
        return m_states[(behind * (m_pieces + 1) + first) * (m_devices + 1) + device];
    }

    void settle(std::size_t behind, std::size_t first, std::size_t device, double most)
    {
        State own = state(behind, first, device + 1); // the device stays idle
        const std::size_t rest = m_countsStages ? behind - 1 : 0;
        for (const std::int32_t kind : m_setting.startsAt[device]) {
            const GroupKind &group = m_setting.kinds[static_cast<std::size_t>(kind)];
            const std::size_t next = device + static_cast<std::size_t>(group.devices);
            if (next > m_devices)
                continue;
            PieceCost stage;
            for (std::size_t end = first + 1; end <= m_pieces; ++end) {
                stage += group.pieces[end - 1];
                if (leastSteadyOf(stage, m_microBatches) > most
                    || (m_countsStages && heldBy(stage, behind, m_setting.microBatches) > m_setting.room))
                    break;
                const double sum = stage.fill + stage.sent + state(rest, end, next).sum;
                if (sum < own.sum && steadyOf(stage, m_microBatches) <= most)
                    own = {sum, kind, static_cast<std::int32_t>(device), static_cast<std::int32_t>(end)};
            }
        }
        state(behind, first, device) = own;
    }

    Answer followed(std::size_t behind)
    {
        Answer answer{state(behind, 0, 0).sum};
        std::size_t device = 0;
        for (std::size_t first = 0; first < m_pieces;) {
            const State &own = state(behind, first, device);
            const GroupKind &group = m_setting.kinds[static_cast<std::size_t>(own.kind)];
            answer.stages.push_back({static_cast<std::int32_t>(first), own.kind, own.device});
            PieceCost stage;
            for (; first < static_cast<std::size_t>(own.end); ++first)
                stage += group.pieces[first];
            answer.most = std::max(answer.most, steadyOf(stage, m_microBatches));
            device = static_cast<std::size_t>(own.device + group.devices);
            behind -= m_countsStages ? 1 : 0;
        }
        return answer;
    }

    const UnequalSetting &m_setting;
    const std::size_t m_pieces;
    const std::size_t m_devices;
    const std::size_t m_stages; ///< At most.
    const double m_microBatches;
    bool m_countsStages = false;
    std::vector<State> m_states{};
};

} // namespace

PieceCost &PieceCost::operator+=(const PieceCost &next)
{
    seconds += next.seconds;
    fill += next.fill;
    hiding += next.hiding;
    reduction += next.reduction;
    update += next.update;
    sent = next.sent;
    bytes += next.bytes;
    kept += next.kept;
    return *this;
}

double unequalSeconds(const UnequalSetting &setting, const std::vector<UnequalStage> &stages)
{
    double sum = 0;
    double most = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const std::vector<PieceCost> &pieces = setting.kinds[static_cast<std::size_t>(stages[s].kind)].pieces;
        const std::size_t end =
            s + 1 < stages.size() ? static_cast<std::size_t>(stages[s + 1].firstPiece) : pieces.size();
        PieceCost stage;
        for (auto piece = static_cast<std::size_t>(stages[s].firstPiece); piece < end; ++piece)
            stage += pieces[piece];
        if (heldBy(stage, stages.size() - s, setting.microBatches) > setting.room)
            return kNever;
        sum += stage.fill + stage.sent;
        most = std::max(most, steadyOf(stage, setting.microBatches));
    }
    return sum + most;
}

std::vector<UnequalStage> unequalStages(const UnequalSetting &setting)
{
    if (setting.kinds.empty() || setting.kinds.front().pieces.empty())
        return {};
    LeastSums sums(setting);
    double best = setting.most;
    std::vector<UnequalStage> stages;
    // Maxima between two bounds, and the least sum under the upper one, by the least that they may lead to.
    struct Between {
        double least = 0;
        double low = 0;
        double high = 0;
        double sum = 0;
        bool operator<(const Between &other) const
        {
            return std::tie(least, low, high) < std::tie(other.least, other.low, other.high);
        }
    };
    std::set<Between> open;
    const auto leave = [&](double low, double high, double sum) {
        if (high > low)
            open.insert({sum + low, low, high, sum});
    };
    // Looks for the least sum under a bound; what is between it and `low` is left to be looked at.
    const auto look = [&](double low, double high) {
        auto answer = sums.within(high);
        if (!answer)
            return false;
        leave(low, answer->most * (1 - kSameBound), answer->sum);
        if (answer->sum + answer->most < best) {
            best = answer->sum + answer->most;
            stages = std::move(answer->stages);
        }
        return true;
    };
    (void)look(0, best);
    while (!open.empty() && open.begin()->least < best * (1 - setting.tolerance)) {
        const Between between = *open.begin();
        open.erase(open.begin());
        if (between.high - between.low <= kSameBound * between.high) {
            (void)look(between.high, between.high);
            continue;
        }
        const double middle = between.low + (between.high - between.low) / 2;
        (void)look(between.low, middle);
        leave(middle, between.high, between.sum);
    }
    return stages;
}

} // namespace planloom
