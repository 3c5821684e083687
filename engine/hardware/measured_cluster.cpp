#include "engine/hardware/measured_cluster.h"

#include "engine/base/files.h"

#include <utility>

namespace planloom {

namespace {

constexpr std::uintmax_t kMostTimingBytes = std::uintmax_t{64} << 20;

Result<std::string> textOf(const std::string &path, const char *what)
{
    return readFile(path, {.what = what, .mostBytes = kMostTimingBytes});
}

/// `error` of a row, with the file of kernels where it is of that one: rows of nccl-tests have theirs.
Error placed(Error error, const Measurements &measurements)
{
    const bool isOfCollectives =
        !measurements.collectives.empty() && error.where.starts_with(measurements.collectives);
    if (error.where.starts_with("/") && !isOfCollectives)
        error.where = measurements.kernels + "#" + error.where;
    return error;
}

Result<KernelTimings> timingsOf(const Measurements &measurements)
{
    KernelTimings timings;
    if (measurements.kernels.empty() && measurements.collectives.empty())
        return Error{ErrorCode::InvalidInput, "there are no times to make a cluster of",
            "name a file of kernels (--kernels), the output of nccl-tests (--collectives) or both",
            "command line"};
    timings.device = measurements.device;
    if (!measurements.kernels.empty()) {
        TRY(const std::string text, textOf(measurements.kernels, "file of timings"));
        auto read = kernelTimings(text, measurements.device);
        if (!read)
            return placed(std::move(read).error(), measurements);
        timings = *std::move(read);
    }
    if (!measurements.collectives.empty()) {
        TRY(const std::string text, textOf(measurements.collectives, "output of nccl-tests"));
        TRY_VOID(addNcclTests(timings, text, measurements.collectives));
    }
    return timings;
}

/// One node of the cluster that says what the times don't.
Result<Cluster> baseOf(std::string base, const std::string &device)
{
    if (base.empty()) {
        const auto profile = profileOfDevice(device);
        if (!profile)
            return Error{ErrorCode::NotFound,
                device.empty() ? "nothing says which device the times are of"
                               : "no profile is of the device \"" + device + "\"",
                "choose one as the base (--base): its data sheet says what times can't", "--base"};
        base = *profile;
    }
    if (base.ends_with(".json") || base.find(':') != std::string::npos)
        return clusterNamed(base);
    TRY(const Cluster one, clusterNamed(base + ":1"));
    return clusterNamed(base + ":" + std::to_string(one.links.devicesPerNode));
}

} // namespace

Result<MeasuredCluster> measuredCluster(const Measurements &measurements)
{
    TRY(KernelTimings timings, timingsOf(measurements));
    TRY(Cluster base, baseOf(measurements.base, timings.device));
    base.name = timings.device.empty() ? base.name : timings.device;
    auto fitted = fittedCluster(std::move(base), timings);
    if (!fitted)
        return placed(std::move(fitted).error(), measurements);
    return MeasuredCluster{std::move(timings.device), *std::move(fitted), std::move(timings.unknown)};
}

Result<std::vector<std::string>> timedDevicesOf(const std::string &kernels)
{
    TRY(const std::string text, textOf(kernels, "file of timings"));
    auto devices = timedDevices(text);
    if (!devices)
        return placed(std::move(devices).error(), {.kernels = kernels});
    return devices;
}

} // namespace planloom
