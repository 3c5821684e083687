#include "engine/interop/configs/config_search.h"

#include "engine/base/divisors.h"
#include "engine/design/fullness.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/interop/configs/config_request.h"
#include "engine/interop/configs/rank_order.h"
#include "engine/interop/configs/read_config.h"
#include "engine/interop/configs/rows_config.h"
#include "engine/interop/configs/write_config.h"
#include "engine/table/row_setting.h"
#include "engine/table/table_mesh.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

namespace {

constexpr std::size_t kStarts = 3; ///< From so many of the best degrees settings are changed one by one.
/// Micro-batches of a pipeline to begin with, for each of its stages: a bubble of a fifth.
constexpr std::int64_t kMicroBatchesOfStage = 4;
constexpr std::array kRecomputations{"none", "selective", "full"};
constexpr std::int64_t kMostZero = 3;
constexpr std::string_view kFsdp = "fsdp"; ///< PyTorch's, which is set up by accelerate's file.

/// What a search changes, one at a time.
struct ConfigPoint {
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1;
    std::int64_t dp = 1; ///< With those that share experts.
    std::int64_t chunks = 1; ///< Stages of a rank.
    std::int64_t zero = 0;
    std::int64_t microBatches = 1;
    std::size_t recomputation = 0; ///< Of `kRecomputations`.
    bool sequence = false;
    std::string schedule{}; ///< Empty: what chunks make it.
};

/// The largest of `sorted`, whose first is 1, that is at most `most`.
std::int64_t largestUpTo(const std::vector<std::int64_t> &sorted, std::int64_t most)
{
    return *std::prev(std::upper_bound(std::next(sorted.begin()), sorted.end(), most));
}

/// Its neighbours in `sorted`, of which it is one.
std::vector<std::int64_t> besideIn(const std::vector<std::int64_t> &sorted, std::int64_t value)
{
    std::vector<std::int64_t> beside;
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
    if (at != sorted.begin())
        beside.push_back(*std::prev(at));
    if (at != sorted.end() && std::next(at) != sorted.end())
        beside.push_back(*std::next(at));
    return beside;
}

class ConfigSearcher
{
public:
    ConfigSearcher(const ConfigFormat &format, const PlanRequest &request, const ConfigSearchOptions &options,
        const std::stop_token &stop)
        : m_format(format)
        , m_request(request)
        , m_options(options)
        , m_stop(stop)
        , m_own(request.table.table())
        , m_layers(static_cast<std::int64_t>(request.model->index->layers().scopes.size()))
    {
        m_base = settingsOfRows(m_own, *request.model);
        if (const auto sizes = sizesOfZoo(request.model->source.source))
            for (const auto &[field, entry] : sizes->entries())
                if (!m_base.has(field))
                    m_base.set(field, entry);
        const InputDimension *const batch = findDimension(request.model->graph->dimensions, "batch");
        m_batch = batch ? batch->size : 1;
    }

    Result<ConfigSearch> run()
    {
        TRY(const Target target, resolve(m_request.target));
        m_devices = target.deviceCount;
        if (!m_base.has("precision"))
            m_base.derive("precision", std::string(nameOf(usualPrecision(target.cluster))));
        for (const ConstraintTable *const known : {&std::as_const(m_own), &m_options.atHand})
            if (const auto config =
                    configOfRows(*known, *m_request.model, static_cast<std::int32_t>(m_devices), m_batch))
                TRY_VOID(tried(withSizes(*config)));
        TRY_VOID(lookAtDegrees());
        if (m_starts.empty() && !m_best)
            return Error{ErrorCode::Conflict,
                "no plan that " + std::string(m_format.name) + " has words for was found"
                    + (m_own.rows.empty() ? " for this model on these devices" : " within these rows")
                    + (m_firstProblem ? ": the first that was tried: " + describe(*m_firstProblem)
                                      : std::string{}),
                "leave more open, or take other devices", "--for"};
        std::sort(
            m_starts.begin(), m_starts.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (std::size_t start = 0; start < std::min(kStarts, m_starts.size()); ++start)
            TRY_VOID(improve(m_starts[start].second));
        return std::move(m_result);
    }

private:
    /// Less is better: plans that fit by their step, behind them others by what they need.
    using Worth = std::pair<bool, double>;

    Result<void> lookAtDegrees()
    {
        const bool hasExperts = m_base.count("experts", 0) > 0;
        for (const std::int64_t pp : divisorsOf(m_devices))
            for (const std::int64_t tp : divisorsOf(m_devices / pp)) {
                const std::int64_t dp = m_devices / pp / tp;
                for (const std::int64_t ep : hasExperts ? divisorsOf(dp) : std::vector<std::int64_t>{1}) {
                    ConfigPoint point{.tp = tp, .pp = pp, .ep = ep, .dp = dp};
                    point.sequence = tp > 1;
                    point.zero = dp > 1 ? 1 : 0;
                    point.microBatches =
                        largestUpTo(microBatchesOf(point), pp > 1 ? kMicroBatchesOfStage * pp : 1);
                    TRY(std::optional<Worth> worth, tried(point));
                    if (!worth || worth->first) {
                        ConfigPoint lean = point;
                        lean.zero = dp > 1 ? kMostZero : 0;
                        lean.recomputation = kRecomputations.size() - 1;
                        lean.microBatches = microBatchesOf(point).back();
                        TRY(const std::optional<Worth> other, tried(lean));
                        if (other && (!worth || *other < *worth)) {
                            worth = other;
                            point = lean;
                        }
                    }
                    if (worth)
                        m_starts.emplace_back(*worth, point);
                }
            }
        return {};
    }

    /// Changes one setting at a time until no change makes it better.
    Result<void> improve(ConfigPoint point)
    {
        TRY(std::optional<Worth> best, tried(point));
        for (bool isBetter = true; isBetter;) {
            isBetter = false;
            for (const auto beside : {&ConfigSearcher::otherMicroBatches, &ConfigSearcher::otherMemory,
                     &ConfigSearcher::otherPipelines, &ConfigSearcher::otherDegrees}) {
                const ConfigPoint from = point;
                for (const ConfigPoint &other : (this->*beside)(from)) {
                    if (m_result.planned >= m_options.mostPlanned)
                        return {};
                    TRY(const std::optional<Worth> worth, tried(other));
                    if (worth && (!best || *worth < *best)) {
                        best = worth;
                        point = other;
                        isBetter = true;
                    }
                }
            }
        }
        return {};
    }

    std::vector<std::int64_t> microBatchesOf(const ConfigPoint &point) const
    {
        return divisorsOf(std::max<std::int64_t>(1, m_batch / point.dp));
    }

    std::vector<ConfigPoint> otherMicroBatches(const ConfigPoint &from) const
    {
        std::vector<ConfigPoint> others;
        for (const std::int64_t count : besideIn(microBatchesOf(from), from.microBatches)) {
            others.push_back(from);
            others.back().microBatches = count;
        }
        return others;
    }

    /// What is sharded, and what is computed again.
    std::vector<ConfigPoint> otherMemory(const ConfigPoint &from) const
    {
        std::vector<ConfigPoint> others;
        for (std::size_t each = 0; each < kRecomputations.size(); ++each)
            if (each != from.recomputation) {
                others.push_back(from);
                others.back().recomputation = each;
            }
        for (std::int64_t zero = 0; from.dp * from.cp > 1 && zero <= kMostZero; ++zero)
            if (zero != from.zero) {
                others.push_back(from);
                others.back().zero = zero;
            }
        if (from.tp > 1) {
            others.push_back(from);
            others.back().sequence = !from.sequence;
        }
        return others;
    }

    std::vector<ConfigPoint> otherPipelines(const ConfigPoint &from) const
    {
        std::vector<ConfigPoint> others;
        if (from.pp == 1)
            return others;
        if (m_layers % from.pp == 0)
            for (const std::int64_t chunks : besideIn(divisorsOf(m_layers / from.pp), from.chunks)) {
                others.push_back(from);
                others.back().chunks = chunks;
            }
        for (const ScheduleKind kind : kAllSchedules)
            if (nameOf(kind) != from.schedule) {
                others.push_back(from);
                others.back().schedule = nameOf(kind);
            }
        return others;
    }

    /// A prime factor of the devices goes from one degree to another.
    std::vector<ConfigPoint> otherDegrees(const ConfigPoint &from) const
    {
        constexpr std::array kDegrees{&ConfigPoint::tp, &ConfigPoint::pp, &ConfigPoint::cp, &ConfigPoint::dp};
        std::vector<ConfigPoint> others;
        const std::vector<std::int64_t> divisors = divisorsOf(m_devices);
        for (const std::int64_t factor : divisors) {
            if (factor == 1 || divisorsOf(factor).size() != 2)
                continue;
            for (const auto less : kDegrees)
                for (const auto more : kDegrees) {
                    if (less == more || from.*less % factor != 0)
                        continue;
                    ConfigPoint other = from;
                    other.*less /= factor;
                    other.*more *= factor;
                    others.push_back(settled(other));
                }
            if (m_base.count("experts", 0) > 0) {
                ConfigPoint other = from;
                other.ep *= factor;
                if (other.dp % other.ep == 0)
                    others.push_back(other);
                other = from;
                other.ep /= factor;
                if (from.ep % factor == 0)
                    others.push_back(other);
            }
        }
        return others;
    }

    /// With the settings that go with its degrees, the others as they were.
    ConfigPoint settled(ConfigPoint point) const
    {
        point.sequence = point.tp > 1;
        if (point.dp % point.ep != 0)
            point.ep = 1;
        if (point.dp * point.cp == 1)
            point.zero = 0;
        else if (point.zero == 0)
            point.zero = 1;
        if (point.pp == 1 || m_layers % (point.pp * point.chunks) != 0)
            point.chunks = 1;
        if (point.pp == 1)
            point.schedule.clear();
        point.microBatches = largestUpTo(
            microBatchesOf(point), std::max(point.microBatches, point.pp > 1 ? point.pp : std::int64_t{1}));
        return point;
    }

    /// Of rows, with what rows don't say.
    FrameworkConfig withSizes(FrameworkConfig config) const
    {
        for (const auto &[field, entry] : m_base.entries())
            if (!config.has(field))
                config.set(field, entry);
        return config;
    }

    FrameworkConfig configOf(const ConfigPoint &point) const
    {
        FrameworkConfig config = m_base;
        for (const auto &[field, value] :
            {std::pair("devices", m_devices), std::pair("data_parallel", point.dp),
                std::pair("tensor_parallel", point.tp), std::pair("pipeline_parallel", point.pp),
                std::pair("context_parallel", point.cp), std::pair("expert_parallel", point.ep),
                std::pair("virtual_pipeline", point.chunks), std::pair("zero", point.zero),
                std::pair("micro_batches", point.microBatches), std::pair("global_batch", m_batch),
                std::pair("micro_batch", std::max<std::int64_t>(1, m_batch / point.dp / point.microBatches))})
            config.derive(field, static_cast<double>(value));
        config.derive("sequence_parallel", point.sequence);
        config.derive("recompute", std::string(kRecomputations[point.recomputation]));
        config.remove("recompute_modules");
        if (!point.schedule.empty())
            config.derive("schedule", point.schedule);
        if (point.pp > 1 && m_layers >= point.pp * point.chunks) {
            // Layers that are left over go to the stages in the middle: the first and the last have the
            // embedding and the logits.
            const std::int64_t stages = point.pp * point.chunks;
            std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), m_layers / stages);
            const std::int64_t more = m_layers % stages;
            for (std::int64_t i = 0; i < more; ++i)
                ++layers[static_cast<std::size_t>((stages - more) / 2 + i)];
            config.derive("layout", evenLayout(layers));
        }
        return config;
    }

    Result<std::optional<Worth>> tried(const ConfigPoint &point) { return tried(configOf(point)); }

    /// What a config is worth; nothing where the format has no words for it, or where it is no plan.
    Result<std::optional<Worth>> tried(const FrameworkConfig &config)
    {
        if (m_stop.stop_requested())
            return cancelled();
        const std::string text = printConfig(m_format, config);
        const auto read = readConfig(text, {.format = std::string(m_format.name), .devices = m_devices});
        if (!read || !read->errors.empty() || read->config.count("devices", m_devices) != m_devices)
            return std::optional<Worth>{};
        const auto said = planOfConfig(read->config, *m_request.model);
        if (!said)
            return std::optional<Worth>{};
        const auto [known, isNew] = m_known.emplace(said->gallery + "\n" + said->rows, std::nullopt);
        if (!isNew)
            return known->second;
        auto planned = plan(*said);
        if (!planned) {
            if (planned.error().code == ErrorCode::Cancelled)
                return std::move(planned).error();
            ++m_result.refused;
            if (!m_firstProblem)
                m_firstProblem = std::move(planned).error();
            return std::optional<Worth>{};
        }
        SaidPlan &found = *planned;
        found.config = read->config;
        known->second = Worth{!found.fits(), found.fits() ? found.stepSeconds : found.fullness};
        if (!m_best || *known->second < *m_best) {
            m_best = known->second;
            m_result.best = found;
            if (m_options.onBetter)
                m_options.onBetter(m_result.best);
        }
        return known->second;
    }

    Result<SaidPlan> plan(const ConfigPlan &said)
    {
        PlanRequest request = m_request;
        request.search = false;
        request.explains = false;
        request.allowsCopies = true;
        request.gallery = said.gallery;
        request.table = TableDocument(said.rows);
        request.upTo = PlanGrade::Checked;
        TRY(PlanAnswerSnapshot answer, planOf(request, m_stop));
        request.gallery.clear();
        ConstraintTable table = answer->table.table();
        for (Row &row : table.rows) // they are nobody's hand's
            row.origin = row.origin == RowOrigin::Text ? RowOrigin::Import : row.origin;
        request.table = TableDocument(print(table));
        if (!m_own.rows.empty()) {
            request.upTo = PlanGrade::Planned;
            TRY(const PlanAnswerSnapshot bare, planOf(request, m_stop));
            request.table = withOwnRows(std::move(table));
            TRY(answer, planOf(request, m_stop));
            const auto ranks = devicesOfRanks(meshOf(bare->table.table()), meshOf(answer->table.table()));
            if (!decidesAlike(*answer->plan, *bare->plan, ranks))
                return Error{ErrorCode::Conflict, "the rows decide more than the format says", {}, {}};
        }
        request.upTo = PlanGrade::Timed;
        ++m_result.planned;
        TRY(answer, planOf(request, m_stop));
        return SaidPlan{.request = std::move(request),
            .stepSeconds = answer->summary.stepSeconds,
            .fullness = fullnessOf(*answer)};
    }

    /// The rows that were asked for behind those of a config, but for those that are the same; a mesh in
    /// another order takes the place of the config's: what ranks do is then done on other devices.
    TableDocument withOwnRows(ConstraintTable table) const
    {
        std::set<std::string> texts;
        MeshRule *mesh = nullptr;
        for (Row &row : table.rows) {
            texts.insert(print(row));
            if (auto *rule = std::get_if<MeshRule>(&row.rule))
                mesh = rule;
        }
        std::vector<Row> others;
        for (const Row &row : m_own.rows) {
            const auto *own = std::get_if<MeshRule>(&row.rule);
            if (own != nullptr && row.enabled && mesh != nullptr && isSameMesh(own->axes, mesh->axes)) {
                std::vector<MeshAxis> axes = own->axes;
                for (const MeshAxis &axis : mesh->axes) // of one device, which rows may name
                    if (findAxis(axes, axis.name) == nullptr)
                        axes.push_back(axis);
                mesh->axes = std::move(axes);
            } else if (!row.enabled || !texts.contains(print(row)))
                others.push_back(row);
        }
        table.rows.insert(table.rows.end(), others.begin(), others.end());
        return TableDocument(print(table));
    }

    /// But for their order, and axes of one device.
    static bool isSameMesh(const std::vector<MeshAxis> &a, const std::vector<MeshAxis> &b)
    {
        const auto holds = [](const std::vector<MeshAxis> &all, const MeshAxis &axis) {
            const MeshAxis *const there = findAxis(all, axis.name);
            return axis.size == 1 || (there != nullptr && there->size == axis.size);
        };
        return std::all_of(a.begin(), a.end(), [&](const MeshAxis &axis) { return holds(b, axis); })
            && std::all_of(b.begin(), b.end(), [&](const MeshAxis &axis) { return holds(a, axis); });
    }

    const ConfigFormat &m_format;
    const PlanRequest &m_request;
    const ConfigSearchOptions &m_options;
    const std::stop_token &m_stop;
    ConstraintTable m_own{};
    std::int64_t m_layers = 0;
    std::int64_t m_batch = 1;
    std::int64_t m_devices = 1;
    FrameworkConfig m_base{}; ///< Sizes, and what the rows say.
    std::map<std::string, std::optional<Worth>> m_known{}; ///< By what a config says, read again.
    std::vector<std::pair<Worth, ConfigPoint>> m_starts{};
    std::optional<Worth> m_best{};
    std::optional<Error> m_firstProblem{};
    ConfigSearch m_result{};
};

} // namespace

Result<ConfigSearch> searchConfigs(const ConfigFormat &format, const PlanRequest &request,
    const ConfigSearchOptions &options, const std::stop_token &stop)
{
    return ConfigSearcher(format, request, options, stop).run();
}

std::vector<std::string> searchedFormatNames()
{
    std::vector<std::string> names = configFormatNames();
    names.emplace_back(kFsdp);
    return names;
}

Result<const ConfigFormat *> searchedFormatNamed(std::string_view name)
{
    auto format = configFormatNamed(name == kFsdp ? "accelerate" : name);
    if (format)
        return format;
    Error error = std::move(format).error();
    error.where = "--for";
    return error;
}

} // namespace planloom
