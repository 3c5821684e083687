#include "engine/traces/reading/open_trace.h"

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/work_pool.h"
#include "engine/traces/nsight/nsight_reader.h"
#include "engine/traces/reading/kineto_event.h"
#include "engine/traces/reading/kineto_reader.h"
#include "engine/traces/reading/run_log_reader.h"
#include "engine/traces/reading/trace_bytes.h"
#include "engine/traces/reading/trace_index.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace planloom {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostFiles = 4096;
constexpr std::uintmax_t kMostCache = std::uintmax_t{4} << 30; ///< Bytes of all indices.
constexpr std::uint64_t kBeginning = 4096; ///< Bytes that tell what a file is.
constexpr std::int64_t kSampleRows = 4096; ///< Of a database's table.
/// Counts up whenever readers make something else of the same file.
constexpr int kReaderVersion = 1;

enum class Depth { Sample, Whole };

/// What a file's index is kept under; empty if the file cannot be asked.
std::string keyOf(const fs::path &path)
{
    std::error_code failure;
    const fs::path whole = fs::canonical(path, failure);
    const std::uintmax_t size = failure ? 0 : fs::file_size(whole, failure);
    const auto time = failure ? fs::file_time_type{} : fs::last_write_time(whole, failure);
    if (failure)
        return {};
    return whole.string() + "\n" + std::to_string(size) + "\n"
        + std::to_string(time.time_since_epoch().count()) + "\n" + std::to_string(kReaderVersion);
}

fs::path indexPath(const fs::path &cache, const std::string &key)
{
    return cache / (sha256(key).substr(0, 32) + ".index");
}

std::string beginningOf(const ByteSource &source)
{
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), kBeginning)), '\0');
    if (!source.read(0, std::as_writable_bytes(std::span(bytes))))
        bytes.clear();
    return bytes;
}

Result<std::vector<RankTrace>> readTraceFile(const fs::path &path, Depth depth, const std::stop_token &stop)
{
    TRY(auto source, openByteSource(path));
    const std::string beginning = beginningOf(*source);
    std::vector<RankTrace> ranks;
    if (isSqlite(beginning)) {
        TRY(RankTrace rank,
            depth == Depth::Sample ? readNsight(path, stop, kSampleRows) : readNsight(path, stop));
        rank.isSample = depth == Depth::Sample;
        ranks.push_back(std::move(rank));
        return ranks;
    }
    TraceBytes bytes(std::move(source), path.string());
    if (isRunLog(beginning))
        return readRunLog(bytes, path.string(), stop, depth == Depth::Sample);
    TRY(RankTrace rank,
        depth == Depth::Sample ? sampleKineto(bytes, path.string(), stop)
                               : readKineto(bytes, path.string(), stop));
    ranks.push_back(std::move(rank));
    return ranks;
}

/// From its index, or from the file, whose index is then kept.
Result<std::vector<RankTrace>> rememberedTraceFile(
    const fs::path &path, Depth depth, const TraceOptions &options, const std::stop_token &stop)
{
    const std::string key = options.cache.empty() ? std::string() : keyOf(path);
    if (!key.empty())
        if (const auto bytes = readFile(indexPath(options.cache, key)))
            if (auto ranks = readTraceIndex(*bytes, key))
                return ranks;
    TRY(auto ranks, readTraceFile(path, depth, stop));
    if (!key.empty() && depth == Depth::Whole) {
        std::error_code failure;
        fs::create_directories(options.cache, failure);
        // What can't be kept is read again the next time.
        [[maybe_unused]] const auto written =
            writeFile(indexPath(options.cache, key), printTraceIndex(ranks, key));
    }
    return ranks;
}

/// Removes the oldest indices until the rest is small enough.
void trimCache(const fs::path &cache)
{
    struct Kept {
        fs::file_time_type time{};
        std::uintmax_t size = 0;
        fs::path path{};
    };
    std::vector<Kept> all;
    std::uintmax_t sum = 0;
    std::error_code failure;
    for (const fs::path &path : filesIn(cache, ".index")) {
        all.push_back({fs::last_write_time(path, failure), fs::file_size(path, failure), path});
        sum += failure ? 0 : all.back().size;
    }
    std::sort(all.begin(), all.end(), [](const Kept &a, const Kept &b) { return a.time < b.time; });
    for (std::size_t i = 0; i < all.size() && sum > kMostCache; ++i) {
        fs::remove(all[i].path, failure);
        sum -= std::min(sum, all[i].size);
    }
}

/// The number that a file's name says its rank is: behind the last "rank", or else its last number.
std::int32_t rankInName(const fs::path &path)
{
    const std::string name = lowerCase(path.filename().string());
    const auto numberFrom = [&](std::size_t at) -> std::int32_t {
        while (at < name.size() && !isDigit(name[at])
            && std::string_view("-_.= ").find(name[at]) != std::string_view::npos)
            ++at;
        std::size_t end = at;
        while (end < name.size() && isDigit(name[end]))
            ++end;
        return end == at || end - at > 6
            ? -1
            : static_cast<std::int32_t>(numberOrMinusOne(std::string_view(name).substr(at, end - at)));
    };
    if (const std::size_t word = name.rfind("rank"); word != std::string::npos)
        if (const std::int32_t rank = numberFrom(word + 4); rank >= 0)
            return rank;
    std::size_t end = name.find_last_of("0123456789");
    if (end == std::string::npos)
        return -1;
    std::size_t begin = end;
    while (begin > 0 && isDigit(name[begin - 1]))
        --begin;
    return numberFrom(begin);
}

using FileOutcome = std::optional<Result<std::vector<RankTrace>>>;

/// Every file by itself, some at a time.
std::vector<FileOutcome> readAll(
    const std::vector<fs::path> &paths, Depth depth, const TraceOptions &options, const std::stop_token &stop)
{
    std::vector<FileOutcome> outcomes(paths.size());
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t done = 0;
    const auto threads = std::min<std::int32_t>(std::max(1, options.threads), allowedCores());
    WorkPool pool(std::min<std::int32_t>(threads, static_cast<std::int32_t>(paths.size())));
    for (std::size_t i = 0; i < paths.size(); ++i)
        pool.submit([&, i] {
            FileOutcome outcome;
            if (stop.stop_requested())
                outcome = cancelled();
            else
                outcome = rememberedTraceFile(paths[i], depth, options, stop);
            const std::scoped_lock lock(mutex);
            outcomes[i] = std::move(outcome);
            ++done;
            if (options.onProgress)
                options.onProgress({done, paths.size()});
            finished.notify_one();
        });
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return done == paths.size(); });
    return outcomes;
}

/// Gives every rank a number of its own.
void numberRanks(Trace &trace, std::vector<RankTrace> found)
{
    std::set<std::int32_t> taken;
    std::vector<RankTrace> open;
    for (RankTrace &rank : found) {
        if (rank.rank < 0) {
            open.push_back(std::move(rank));
        } else if (taken.insert(rank.rank).second) {
            trace.ranks.push_back(std::move(rank));
        } else {
            trace.remarks.push_back(
                {rank.file, "another file is of rank " + std::to_string(rank.rank) + ", too", 1});
        }
    }
    // File names say numbers of ranks only if no two say the same.
    std::map<std::int32_t, int> named;
    for (const RankTrace &rank : open)
        ++named[rankInName(rank.file)];
    const bool isNamed = named.count(-1) == 0
        && std::all_of(named.begin(), named.end(),
            [&](const auto &each) { return each.second == 1 && taken.count(each.first) == 0; });
    std::int32_t next = 0;
    for (RankTrace &rank : open) {
        while (taken.count(next) > 0)
            ++next;
        rank.rank = isNamed ? rankInName(rank.file) : next;
        taken.insert(rank.rank);
        trace.ranks.push_back(std::move(rank));
    }
    std::sort(trace.ranks.begin(), trace.ranks.end(),
        [](const RankTrace &a, const RankTrace &b) { return a.rank < b.rank; });
}

Result<Trace> readTrace(
    const TraceFiles &files, Depth depth, const TraceOptions &options, const std::stop_token &stop)
{
    std::vector<fs::path> paths = files.named;
    paths.insert(paths.end(), files.found.begin(), files.found.end());
    if (paths.empty())
        return Error{ErrorCode::InvalidInput, "there is no trace to read", {}, "trace"};
    std::vector<FileOutcome> outcomes = readAll(paths, depth, options, stop);
    if (stop.stop_requested())
        return cancelled();
    Trace trace;
    std::vector<RankTrace> found;
    std::optional<Error> first;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        Result<std::vector<RankTrace>> &outcome = *outcomes[i];
        if (outcome) {
            std::move(outcome->begin(), outcome->end(), std::back_inserter(found));
            continue;
        }
        if (i < files.named.size())
            return std::move(outcome).error();
        if (!first)
            first = outcome.error();
        trace.remarks.push_back({outcome.error().where, outcome.error().message, 1});
    }
    if (found.empty())
        return *first;
    numberRanks(trace, std::move(found));
    if (depth == Depth::Whole && !options.cache.empty())
        trimCache(options.cache);
    return trace;
}

} // namespace

Result<TraceFiles> traceFilesOf(const std::vector<fs::path> &paths)
{
    static constexpr std::array<std::string_view, 5> kEndings{
        ".json", ".json.gz", ".sqlite", ".jsonl", ".gz"};
    TraceFiles files;
    for (const fs::path &path : paths) {
        std::error_code failure;
        if (!fs::is_directory(path, failure)) {
            if (!fs::exists(path, failure))
                return Error{
                    ErrorCode::NotFound, "there is no such file or folder", "check the path", path.string()};
            files.named.push_back(path);
            continue;
        }
        const std::size_t before = files.found.size();
        fs::directory_iterator entry(path, failure);
        for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
            const std::string name = lowerCase(entry->path().filename().string());
            const bool isTrace = std::any_of(kEndings.begin(), kEndings.end(),
                [&](std::string_view ending) { return name.ends_with(ending); });
            if (isTrace && entry->is_regular_file(failure))
                files.found.push_back(entry->path());
            if (files.found.size() > kMostFiles)
                break;
        }
        if (files.found.size() == before)
            return Error{ErrorCode::InvalidInput, "the folder has no traces",
                "traces are files of torch.profiler (.json, .json.gz) or of Nsight Systems (.sqlite)",
                path.string()};
    }
    std::sort(files.found.begin(), files.found.end());
    if (files.named.size() + files.found.size() > kMostFiles)
        return Error{
            ErrorCode::ResourceLimit, "there are more than 4,096 traces", "name some of them", "trace"};
    return files;
}

bool isTraceFile(const fs::path &path)
{
    auto source = openByteSource(path);
    if (!source)
        return false;
    const std::string beginning = beginningOf(**source);
    const std::string name = lowerCase(path.filename().string());
    if (isSqlite(beginning))
        return name.ends_with(".sqlite"); // sessions are such databases, too
    if (isRunLog(beginning))
        return name.ends_with(".jsonl");
    TraceBytes bytes(*std::move(source), path.string());
    return sampleKineto(bytes, path.string()).has_value();
}

Result<Trace> openTrace(const TraceFiles &files, const TraceOptions &options, const std::stop_token &stop)
{
    return readTrace(files, Depth::Whole, options, stop);
}

Result<Trace> sampleTrace(const TraceFiles &files, const TraceOptions &options, const std::stop_token &stop)
{
    return readTrace(files, Depth::Sample, options, stop);
}

} // namespace planloom
