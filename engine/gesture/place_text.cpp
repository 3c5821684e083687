#include "engine/gesture/place_text.h"

#include "engine/base/text.h"
#include "engine/hardware/device_word.h"
#include "engine/table/domain.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace planloom {

namespace {

std::optional<std::int32_t> numberIn(std::string_view text)
{
    std::int32_t value = 0;
    const auto *end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (text.empty() || read.ec != std::errc{} || read.ptr != end || value < 0)
        return std::nullopt;
    return value;
}

Error wrong(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "place"};
}

/// "0", "0-7": what there is to name.
std::string allOf(std::int32_t count)
{
    return count > 1 ? "0-" + std::to_string(count - 1) : "0";
}

constexpr const char *kAdvice = "Write 3, 0-3, h0 (a host), tp:2 (a place on the mesh), all or free.";

Result<void> addDevices(PlaceTarget &target, std::int32_t first, std::int32_t last, const PlaceWorld &world)
{
    if (first > last)
        return wrong(
            "a range of devices runs upwards: " + std::to_string(last) + "-" + std::to_string(first));
    if (last >= world.deviceCount)
        return wrong("there is no device " + std::to_string(last) + ": they are " + allOf(world.deviceCount));
    for (std::int32_t device = first; device <= last; ++device)
        target.devices.push_back(DeviceId{device});
    return {};
}

Result<void> addPart(PlaceTarget &target, std::string_view part, const PlaceWorld &world)
{
    if (const auto device = numberIn(part))
        return addDevices(target, *device, *device, world);
    if (const auto dash = part.find('-'); dash != std::string_view::npos) {
        const auto first = numberIn(trimmed(part.substr(0, dash)));
        const auto last = numberIn(trimmed(part.substr(dash + 1)));
        if (first && last)
            return addDevices(target, *first, *last, world);
    }
    if (const auto colon = part.find_first_of(":="); colon != std::string_view::npos) {
        const std::string name(trimmed(part.substr(0, colon)));
        const auto index = numberIn(trimmed(part.substr(colon + 1)));
        const auto axis = std::find_if(
            world.mesh.begin(), world.mesh.end(), [&](const MeshAxis &each) { return each.name == name; });
        if (axis == world.mesh.end()) {
            std::string known;
            for (const auto &each : world.mesh)
                known += (known.empty() ? "" : ", ") + each.name;
            return wrong("the mesh has no axis " + name,
                known.empty() ? "A row like \"mesh dp=2 tp=4\" makes one." : "Its axes are " + known + ".");
        }
        if (!index || *index >= axis->size)
            return wrong("axis " + name + " has the places " + allOf(axis->size));
        const bool again = std::any_of(target.coordinates.begin(), target.coordinates.end(),
            [&](const AxisCoordinate &each) { return each.axis == name; });
        if (again)
            return wrong("axis " + name + " is named twice");
        target.coordinates.push_back({name, *index});
        return {};
    }
    if (part.front() == 'h' || part.front() == 'H') {
        const auto host = numberIn(trimmed(part.substr(1)));
        if (host && *host < world.hostCount()) {
            const auto devices = world.devicesOfHost(*host);
            target.devices.insert(target.devices.end(), devices.begin(), devices.end());
            return {};
        }
        if (host)
            return wrong(
                "there is no host " + std::to_string(*host) + ": they are " + allOf(world.hostCount()));
    }
    return wrong("expected devices, found \"" + std::string(part) + "\"", kAdvice);
}

} // namespace

std::vector<DeviceId> PlaceWorld::devicesOfHost(std::int32_t host) const
{
    std::vector<DeviceId> devices;
    for (std::int32_t device = host * devicesPerHost;
         device < std::min((host + 1) * devicesPerHost, deviceCount); ++device)
        devices.push_back(DeviceId{device});
    return devices;
}

PlaceWorld placeWorldOf(const GestureContext &context)
{
    return {.deviceCount = context.deviceCount,
        .devicesPerHost = std::max(context.cluster.links.devicesPerNode, 1),
        .mesh = context.mesh,
        .device = deviceWord(context.cluster)};
}

Result<PlaceTarget> placeFromText(std::string_view text, const PlaceWorld &world)
{
    text = trimmed(text);
    PlaceTarget target;
    if (text.empty())
        return wrong("no device is named", kAdvice);
    if (sameLetters(text, "free")) {
        target.free = true;
        return target;
    }
    if (sameLetters(text, "all")) {
        TRY_VOID(addDevices(target, 0, world.deviceCount - 1, world));
        return target;
    }
    while (true) {
        const auto comma = text.find(',');
        const auto part = trimmed(text.substr(0, comma));
        if (part.empty())
            return wrong("a comma stands between two devices");
        TRY_VOID(addPart(target, part, world));
        if (comma == std::string_view::npos)
            break;
        text.remove_prefix(comma + 1);
    }
    if (!target.devices.empty() && !target.coordinates.empty())
        return wrong("devices and places on the mesh do not mix");
    return target;
}

PlaceGesture placeGesture(const PlaceTarget &target, std::vector<OperatorId> operators)
{
    return {.operators = std::move(operators), .devices = target.devices, .coordinates = target.coordinates};
}

std::vector<DeviceId> devicesOf(const PlaceTarget &target, const PlaceWorld &world)
{
    if (!target.coordinates.empty()) {
        auto devices = domainOnMesh(world.mesh, target.coordinates).devices;
        std::sort(devices.begin(), devices.end());
        return devices;
    }
    auto devices = target.devices;
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
}

} // namespace planloom
