#include "engine/design/solved_store.h"

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/user_folder.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/program/graph_json.h"
#include "engine/table/table_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kSolvedFormat = "planloom-solved-3";
constexpr const char *kSolvedEnding = ".solved";
constexpr std::uintmax_t kMostSolvedBytes = 16u << 20;
constexpr std::size_t kMostSolvedFiles = 1000;
constexpr std::size_t kSolvedInMemory = 64;
constexpr std::size_t kMostSeenKept = 400; ///< Plans that were looked at: simulated ones, then the fastest.

json configurationToJson(const Configuration &configuration)
{
    json out{{"replicas", configuration.replicas}, {"ranks", configuration.ranks},
        {"shards", configuration.shards}, {"stages_per_rank", configuration.stagesPerRank},
        {"micro_batches", configuration.microBatches}, {"schedule", nameOf(configuration.schedule)},
        {"zero", configuration.zero}, {"recompute", nameOf(configuration.recompute)},
        {"ranks_outside", configuration.ranksOutside ? 1 : 0}};
    if (configuration.outerShards > 1)
        out["outer_shards"] = configuration.outerShards;
    for (const StageGroup &group : configuration.groups)
        out["groups"].push_back(
            {{"first", group.first}, {"replicas", group.replicas}, {"shards", group.shards}});
    return out;
}

json planToJson(const SearchedPlan &plan)
{
    json out{{"configuration", configurationToJson(plan.configuration)}, {"seconds", plan.seconds},
        {"peak_bytes", plan.peakBytes}};
    if (plan.simulatedSeconds > 0)
        out.update({{"simulated_seconds", plan.simulatedSeconds}, {"simulated_peak", plan.simulatedPeak},
            {"at", plan.at}});
    if (plan.rows)
        out["rows"] = print(*plan.rows);
    return out;
}

/// Reads one object and remembers whether all of it was as it must be.
class SolvedReader
{
public:
    bool isGood() const { return m_good; }
    void refuse() { m_good = false; }

    template<typename T> T number(const json &from, const char *name, T least)
    {
        const auto found = from.find(name);
        if (found == from.end() || !found->is_number()) {
            m_good = false;
            return least;
        }
        const double value = found->get<double>();
        constexpr double kMost = std::is_same_v<T, std::int32_t> ? 2147483647.0 : 9e18;
        if (!std::isfinite(value) || value < static_cast<double>(least) || value > kMost) {
            m_good = false;
            return least;
        }
        return found->get<T>();
    }

    std::string text(const json &from, const char *name)
    {
        const auto found = from.find(name);
        if (found == from.end() || !found->is_string()) {
            m_good = false;
            return {};
        }
        return found->get<std::string>();
    }

    ConstraintTable rows(const json &from)
    {
        auto table = parseTable(text(from, "rows"));
        if (!table) {
            m_good = false;
            return {};
        }
        return *std::move(table);
    }

    SearchedPlan plan(const json &from)
    {
        SearchedPlan read;
        const json &own = from.contains("configuration") ? from.at("configuration") : json::object();
        Configuration &configuration = read.configuration;
        configuration.replicas = number<std::int32_t>(own, "replicas", 1);
        configuration.ranks = number<std::int32_t>(own, "ranks", 1);
        configuration.shards = number<std::int32_t>(own, "shards", 1);
        if (own.contains("outer_shards"))
            configuration.outerShards = number<std::int32_t>(own, "outer_shards", 1);
        if (configuration.shards % configuration.outerShards != 0)
            m_good = false;
        configuration.stagesPerRank = number<std::int32_t>(own, "stages_per_rank", 1);
        configuration.microBatches = number<std::int32_t>(own, "micro_batches", 1);
        configuration.zero = number<std::int32_t>(own, "zero", 0);
        configuration.ranksOutside = number<std::int32_t>(own, "ranks_outside", 0) != 0;
        if (own.contains("groups"))
            for (const json &group : own.at("groups"))
                configuration.groups.push_back({number<std::int32_t>(group, "first", 0),
                    number<std::int32_t>(group, "replicas", 1), number<std::int32_t>(group, "shards", 1)});
        const auto schedule = scheduleNamed(text(own, "schedule"));
        const std::string recompute = text(own, "recompute");
        m_good = m_good && schedule.has_value();
        if (schedule)
            configuration.schedule = *schedule;
        constexpr RecomputeWord kWords[] = {
            RecomputeWord::None, RecomputeWord::Selective, RecomputeWord::Full};
        const auto *const word = std::find_if(std::begin(kWords), std::end(kWords),
            [&](RecomputeWord each) { return nameOf(each) == recompute; });
        if (word == std::end(kWords))
            m_good = false;
        else
            configuration.recompute = *word;
        read.seconds = number(from, "seconds", 0.0);
        read.peakBytes = number<std::int64_t>(from, "peak_bytes", 0);
        if (from.contains("simulated_seconds")) {
            read.simulatedSeconds = number(from, "simulated_seconds", 0.0);
            read.simulatedPeak = number<std::int64_t>(from, "simulated_peak", 0);
            read.at = number(from, "at", 0.0);
        }
        if (from.contains("rows"))
            read.rows = std::make_shared<const ConstraintTable>(rows(from));
        return read;
    }

private:
    bool m_good = true;
};

/// Whether `a` is to be kept rather than `b`, of one question.
bool isBetterSolved(const SearchResult &a, const SearchResult &b)
{
    if (a.fits != b.fits)
        return a.fits;
    if (a.best.simulatedSeconds != b.best.simulatedSeconds)
        return a.best.simulatedSeconds < b.best.simulatedSeconds;
    return a.bound >= b.bound;
}

} // namespace

std::string solvedText(const SearchResult &result)
{
    json seen = json::array();
    for (const bool simulated : {true, false})
        for (const SearchedPlan &plan : result.seen)
            if ((plan.simulatedSeconds > 0) == simulated && seen.size() < kMostSeenKept)
                seen.push_back(planToJson(plan));
    json course = json::array();
    for (const SearchMoment &moment : result.course)
        course.push_back({moment.at, moment.best, moment.bound});
    const json out{{"rows", print(result.rows)}, {"best", planToJson(result.best)}, {"fits", result.fits},
        {"bound", result.bound}, {"model_bound", result.modelBound},
        {"configurations", result.configurations}, {"least_peak", result.leastPeak},
        {"least_needed", result.leastNeeded}, {"memory_limit", result.memoryLimit},
        {"seconds", result.searchSeconds}, {"seen", std::move(seen)}, {"course", std::move(course)}};
    const std::string body = out.dump(-1, ' ', false, json::error_handler_t::replace);
    return std::string(kSolvedFormat) + " " + sha256(body) + "\n" + body;
}

Result<SearchResult> solvedOf(const std::string &text)
{
    const Error none{ErrorCode::InvalidInput, "this is no remembered search, or it was changed", {}, {}};
    const std::size_t end = text.find('\n');
    if (end == std::string::npos)
        return none;
    const std::string body = text.substr(end + 1);
    if (text.substr(0, end) != std::string(kSolvedFormat) + " " + sha256(body))
        return none;
    const json from = json::parse(body, nullptr, false);
    if (!from.is_object() || !from.contains("best") || !from.at("best").is_object())
        return none;
    SolvedReader reader;
    SearchResult result;
    result.rows = reader.rows(from);
    result.best = reader.plan(from.at("best"));
    result.fits = from.value("fits", json(nullptr)) == json(true);
    result.bound = reader.number(from, "bound", 0.0);
    result.modelBound = reader.number(from, "model_bound", 0.0);
    result.configurations = reader.number<std::int64_t>(from, "configurations", 1);
    result.leastPeak = reader.number<std::int64_t>(from, "least_peak", 0);
    result.leastNeeded = reader.number<std::int64_t>(from, "least_needed", 0);
    result.memoryLimit = reader.number<std::int64_t>(from, "memory_limit", 0);
    result.searchSeconds = reader.number(from, "seconds", 0.0);
    for (const json &plan : from.value("seen", json::array())) {
        if (!plan.is_object() || result.seen.size() >= kMostSeenKept)
            return none;
        result.seen.push_back(reader.plan(plan));
    }
    for (const json &moment : from.value("course", json::array())) {
        const bool isOne = moment.is_array() && moment.size() == 3
            && std::all_of(moment.begin(), moment.end(), [](const json &each) {
                   return each.is_number() && std::isfinite(each.get<double>()) && each.get<double>() >= 0;
               });
        if (!isOne)
            return none;
        result.course.push_back({moment[0].get<double>(), moment[1].get<double>(), moment[2].get<double>()});
    }
    std::stable_sort(result.seen.begin(), result.seen.end(),
        [](const SearchedPlan &a, const SearchedPlan &b) { return a.seconds < b.seconds; });
    if (!reader.isGood() || result.best.simulatedSeconds <= 0
        || result.bound > result.best.simulatedSeconds * (1 + 1e-9))
        return none;
    return result;
}

std::filesystem::path userSolvedFolder()
{
    const fs::path cache = userCacheFolder();
    return cache.empty() ? fs::path{} : cache / "solved";
}

SolvedStore::SolvedStore(fs::path folder)
    : m_folder(std::move(folder))
{
}

fs::path SolvedStore::fileOf(const std::string &key) const
{
    return m_folder / (key + kSolvedEnding);
}

std::string SolvedStore::digestOf(const GraphSnapshot &graph)
{
    {
        const std::lock_guard lock(m_mutex);
        if (m_graph.lock() == graph)
            return m_digest;
    }
    std::string digest = sha256(graphToJson(*graph).dump(-1, ' ', false, json::error_handler_t::replace));
    const std::lock_guard lock(m_mutex);
    m_graph = graph;
    m_digest = digest;
    return digest;
}

std::string SolvedStore::keyOf(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    PrecisionPreset precision, const ConstraintTable &rows)
{
    std::vector<std::string> texts; // order has no meaning
    for (const Row &row : rows.rows)
        if (row.enabled)
            texts.push_back(print(row));
    std::sort(texts.begin(), texts.end());
    std::string question = std::string(kSolvedFormat) + " " PLANLOOM_VERSION "\n" + digestOf(model.graph)
        + "\n" + sha256(toJson(cluster)) + "\n" + std::to_string(deviceCount) + "\n"
        + std::to_string(static_cast<int>(precision)) + "\n";
    for (const std::string &text : texts)
        question += text + "\n";
    return sha256(question);
}

std::optional<SearchResult> SolvedStore::find(const std::string &key)
{
    {
        const std::lock_guard lock(m_mutex);
        if (const auto known = m_known.find(key); known != m_known.end())
            return known->second;
    }
    if (m_folder.empty())
        return std::nullopt;
    const auto text = readFile(fileOf(key), {"remembered search", kMostSolvedBytes});
    if (!text)
        return std::nullopt;
    auto result = solvedOf(*text);
    if (!result) {
        std::error_code failure;
        fs::remove(fileOf(key), failure); // it is made again
        return std::nullopt;
    }
    const std::lock_guard lock(m_mutex);
    return m_known.insert_or_assign(key, *std::move(result)).first->second;
}

void SolvedStore::remember(const std::string &key, const SearchResult &result)
{
    if (const auto known = find(key); known && isBetterSolved(*known, result))
        return;
    SearchResult kept = result;
    kept.plan = nullptr;
    kept.materialized = nullptr;
    const std::string text = m_folder.empty() ? std::string{} : solvedText(kept);
    {
        const std::lock_guard lock(m_mutex);
        if (m_known.size() >= kSolvedInMemory)
            m_known.clear();
        m_known.insert_or_assign(key, std::move(kept));
    }
    if (m_folder.empty())
        return;
    std::error_code failure;
    fs::create_directories(m_folder, failure);
    makeRoom();
    static_cast<void>(writeFile(fileOf(key), text)); // else it is in memory
}

void SolvedStore::forget(const std::string &key)
{
    {
        const std::lock_guard lock(m_mutex);
        m_known.erase(key);
    }
    std::error_code failure;
    if (!m_folder.empty())
        fs::remove(fileOf(key), failure);
}

/// Takes away the oldest tenth where there are too many.
void SolvedStore::makeRoom() const
{
    const std::vector<fs::path> files = filesIn(m_folder, kSolvedEnding);
    if (files.size() < kMostSolvedFiles)
        return;
    std::vector<std::pair<fs::file_time_type, fs::path>> byAge;
    std::error_code failure;
    for (const fs::path &file : files)
        byAge.emplace_back(fs::last_write_time(file, failure), file);
    std::sort(byAge.begin(), byAge.end());
    byAge.resize(byAge.size() - kMostSolvedFiles * 9 / 10);
    for (const auto &[time, file] : byAge)
        fs::remove(file, failure);
}

} // namespace planloom
