#include "engine/runtime/machine/machine_profile.h"

#include "engine/base/work_pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace planloom {

namespace {

using Json = nlohmann::json;
constexpr const char *kFormat = "planloom-machine-profile";
constexpr int kVersion =
    4; ///< Of the format, and of kernels that take, or are measured to take, another time.

/// What the time of a kernel of this category grows with.
double workOf(OperatorCategory category, double flops, double bytes)
{
    const bool byFlops = category == OperatorCategory::Product || category == OperatorCategory::Attention
        || category == OperatorCategory::Recurrent;
    return std::max(byFlops ? flops : bytes, 1.0);
}

/// Seconds by work of one category, ascending: straight lines between logarithms.
class TimesByWork
{
public:
    void add(double work, double seconds) { m_points.emplace_back(std::log(work), std::log(seconds)); }
    void sort() { std::sort(m_points.begin(), m_points.end()); }
    bool empty() const { return m_points.empty(); }

    /// The mean rate of the measured ones around: shapes of equal work differ.
    double at(double work) const
    {
        const double x = std::log(work);
        constexpr double kAround = 1.4; // measured ones of a quarter to four times the work count
        double sum = 0;
        double weights = 0;
        double nearest = 0;
        double distance = -1;
        for (const auto &[logWork, logSeconds] : m_points) {
            const double away = std::abs(logWork - x);
            if (distance < 0 || away < distance) {
                distance = away;
                nearest = logSeconds - logWork;
            }
            if (away > kAround)
                continue;
            const double weight = 1 - away / kAround + 1e-3;
            sum += weight * (logSeconds - logWork);
            weights += weight;
        }
        return std::exp(x + (weights > 0 ? sum / weights : nearest));
    }

private:
    std::vector<std::pair<double, double>> m_points;
};

struct ProfileTables {
    MachineProfile profile{};
    CostModel otherwise{};
    ProfileTime time{};
    std::map<OperatorCategory, TimesByWork> times{};

    /// Of what is measured in seconds that all cores may help with, or that one core works alone.
    double alone(double seconds) const
    {
        return time == ProfileTime::Work ? seconds / std::max(1, profile.cores) : seconds;
    }
    double of(const MeasuredKernel &kernel) const
    {
        return time == ProfileTime::Work ? kernel.coreSeconds / std::max(1, profile.cores) : kernel.seconds;
    }

    double kernel(const KernelQuery &query) const
    {
        const double task = alone(profile.taskSeconds);
        if (const auto found = profile.kernels.find(kernelKey(query)); found != profile.kernels.end())
            return of(found->second) + task;
        const OperatorCategory category = categoryOf(query.op);
        const auto known = times.find(category);
        if (known == times.end())
            return otherwise.kernel(query);
        const Work work = planloom::workOf(query.op, query.inputs, query.outputs, query.attention);
        return known->second.at(workOf(category, work.flops, work.bytes)) + task;
    }

    /// Members read and write each other's memory: what counts is the bytes that all of them move.
    double collective(CollectiveKind kind, Bytes bytes, GroupShape shape) const
    {
        if (shape.ranks <= 1)
            return 0;
        if (profile.exchangeSeconds <= 0 && profile.exchangeRate <= 0)
            return otherwise.collective(kind, bytes, shape);
        const auto size = static_cast<double>(bytes.count);
        const auto ranks = static_cast<double>(shape.ranks);
        double moved = 0;
        switch (kind) {
        case CollectiveKind::AllReduce: // every member's is read and written
        case CollectiveKind::AllToAll:
        case CollectiveKind::Shift:
        case CollectiveKind::AllGather:
        case CollectiveKind::Broadcast:
            moved = 2 * ranks * size;
            break;
        case CollectiveKind::ReduceScatter: // all are read, one is written
            moved = (ranks + 1) * size;
            break;
        case CollectiveKind::SendRecv:
            moved = 2 * size;
            break;
        }
        const double seconds = profile.exchangeSeconds + moved / std::max(profile.exchangeRate, 1.0);
        return time == ProfileTime::Work ? seconds / ranks : seconds; // it is every member's at once
    }
};

double numberAt(const Json &object, const char *name)
{
    return object.at(name).get<double>();
}

} // namespace

std::string machineName()
{
    std::string name = "CPU";
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos && line.starts_with("model name")) {
            name = line.substr(colon + 2);
            break;
        }
    }
    const std::int32_t cores = allowedCores();
    return name + ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
}

std::string kernelKey(const KernelQuery &query)
{
    std::string key = std::string{nameOf(query.op.kind)} + ' '
        + std::to_string(static_cast<int>(query.op.direction)) + ' ' + nameOf(query.computeType);
    if (query.attention != AttentionMode::Fused && categoryOf(query.op) == OperatorCategory::Attention)
        key += " plain";
    for (const auto *const list : {&query.inputs, &query.outputs}) {
        key += list == &query.inputs ? " :" : " >";
        for (const TensorType &type : *list)
            key += std::string{" "} + nameOf(type.dataType) + toString(type.shape);
    }
    return key;
}

CostModel costModelOf(const MachineProfile &profile, const CostModel &otherwise, ProfileTime time)
{
    auto made = std::make_shared<ProfileTables>(ProfileTables{profile, otherwise, time, {}});
    for (const auto &[key, kernel] : profile.kernels)
        if (made->of(kernel) > 0)
            made->times[kernel.category].add(
                workOf(kernel.category, kernel.flops, kernel.bytes), made->of(kernel));
    for (auto &[category, times] : made->times)
        times.sort();
    const std::shared_ptr<const ProfileTables> tables = std::move(made);
    CostModel costs;
    costs.kernel = [tables](const KernelQuery &query) { return tables->kernel(query); };
    costs.collective = [tables](CollectiveKind kind, Bytes bytes, GroupShape shape) {
        return tables->collective(kind, bytes, shape);
    };
    costs.copy = [tables](Bytes bytes, std::int32_t) {
        return tables->alone(tables->profile.taskSeconds)
            + 2 * static_cast<double>(bytes.count) / std::max(tables->profile.copyRate, 1.0);
    };
    costs.hostCopy = costs.copy; // a host is where the device is
    return costs;
}

std::string profilePath(const std::string &backend)
{
    const char *const cache = std::getenv("XDG_CACHE_HOME");
    const char *const home = std::getenv("HOME");
    std::filesystem::path folder;
    if (cache != nullptr && *cache != '\0')
        folder = cache;
    else if (home != nullptr && *home != '\0')
        folder = std::filesystem::path(home) / ".cache";
    else
        return {};
    return (folder / "planloom" / (backend + "-profile.json")).string();
}

Result<MachineProfile> readProfile(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return Error{ErrorCode::NotFound, "there is no file " + path, "check the path", path};
    try {
        const Json document = Json::parse(file);
        if (document.value("format", "") != kFormat || document.value("version", 0) != kVersion)
            return Error{ErrorCode::InvalidInput,
                std::string{"expected a machine profile of version "} + std::to_string(kVersion),
                "measure it anew: planloom-exec bench", path};
        MachineProfile profile;
        profile.machine = document.at("machine").get<std::string>();
        profile.cores = document.at("cores").get<std::int32_t>();
        profile.oneEach = document.value("one_each", false);
        profile.taskSeconds = numberAt(document, "task_seconds");
        profile.exchangeSeconds = numberAt(document, "exchange_seconds");
        profile.exchangeRate = numberAt(document, "exchange_bytes_per_second");
        profile.copyRate = numberAt(document, "copy_bytes_per_second");
        for (const Json &each : document.at("kernels")) {
            const int category = each.at("category").get<int>();
            if (category < 0 || category > static_cast<int>(OperatorCategory::Other))
                return Error{
                    ErrorCode::InvalidInput, "there is no category " + std::to_string(category), {}, path};
            profile.kernels[each.at("kernel").get<std::string>()] = {static_cast<OperatorCategory>(category),
                numberAt(each, "flops"), numberAt(each, "bytes"), numberAt(each, "seconds"),
                numberAt(each, "core_seconds"), numberAt(each, "spread")};
        }
        return profile;
    } catch (const Json::exception &problem) {
        return Error{ErrorCode::InvalidInput, std::string{"the profile cannot be read: "} + problem.what(),
            "measure it anew: planloom-exec bench", path};
    }
}

Result<void> writeProfile(const std::string &path, const MachineProfile &profile)
{
    Json kernels = Json::array();
    for (const auto &[key, kernel] : profile.kernels)
        kernels.push_back({{"kernel", key}, {"category", static_cast<int>(kernel.category)},
            {"flops", kernel.flops}, {"bytes", kernel.bytes}, {"seconds", kernel.seconds},
            {"core_seconds", kernel.coreSeconds}, {"spread", kernel.spread}});
    const Json document{{"format", kFormat}, {"version", kVersion}, {"machine", profile.machine},
        {"cores", profile.cores}, {"one_each", profile.oneEach}, {"task_seconds", profile.taskSeconds},
        {"exchange_seconds", profile.exchangeSeconds}, {"exchange_bytes_per_second", profile.exchangeRate},
        {"copy_bytes_per_second", profile.copyRate}, {"kernels", std::move(kernels)}};
    std::error_code failed;
    const std::filesystem::path target(path);
    if (target.has_parent_path())
        std::filesystem::create_directories(target.parent_path(), failed);
    const std::string fresh = path + "." + std::to_string(::getpid()); // readers never see half of it
    {
        std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
        file << document.dump(1) << "\n";
        if (!file.flush())
            return Error{ErrorCode::Io, "the profile cannot be written", "check the folder", path};
    }
    std::filesystem::rename(fresh, target, failed);
    if (failed)
        return Error{
            ErrorCode::Io, "the profile cannot be written: " + failed.message(), "check the folder", path};
    return {};
}

} // namespace planloom
