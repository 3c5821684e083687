#include "engine/hardware/framework.h"

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/embedded_profiles.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace planloom {

namespace {

using Json = nlohmann::json;

/// The profiles are a part of the program, and a test reads all of them: what they lack is none's.
Sourced figureOf(const Json &owner, const char *name)
{
    const auto found = owner.find(name);
    return found == owner.end()
        ? Sourced{}
        : Sourced{found->at("value").get<double>(), found->at("source").get<std::string>()};
}

Json profileOfFramework(std::string_view name)
{
    for (const EmbeddedProfile &profile : embeddedFrameworks())
        if (profile.name == name)
            return Json::parse(profile.json);
    return {};
}

/// Of formats that have rates of attention of their own, too.
void setAttention(DeviceModel &device, const Sourced &forward, const Sourced &backward)
{
    device.attentionEfficiency = forward;
    device.attentionBackwardEfficiency = backward;
    device.attentionKeysLost = {};
    for (FormatEfficiency &format : device.formats)
        format.attention = format.attentionBackward = {};
}

/// What kernels of collectives, which hold `channelHolds` multiprocessors for each of their channels, leave.
Sourced leftBeside(const Sourced &channelHolds, const DeviceModel &device, const Interconnect &links)
{
    const double held = channelHolds.value * links.intraChannels.value;
    if (held <= 0 || held >= device.multiprocessors.value)
        return {};
    char words[160];
    std::snprintf(words, sizeof words,
        "%g channels of %g multiprocessors each, of %g: ", links.intraChannels.value, channelHolds.value,
        device.multiprocessors.value);
    return {1 - held / device.multiprocessors.value, words + channelHolds.source};
}

void apply(const Json &framework, DeviceModel &device, const Interconnect &links)
{
    device.hostTime = figureOf(framework, "hostTime");
    device.unfused = figureOf(framework, "unfused");
    device.composed.clear();
    const Json composed = framework.value("composed", Json::object());
    for (const auto &[name, each] : composed.items())
        if (const auto kind = operatorKindNamed(name))
            device.composed.push_back({*kind, figureOf(each, "forward"), figureOf(each, "backward"),
                figureOf(each, "forwardKernels"), figureOf(each, "backwardKernels")});
    for (const Json &each : framework.value("attention", Json::array()))
        if (each.at("architecture") == nameOf(links.architecture))
            setAttention(device, figureOf(each, "forward"), figureOf(each, "backward"));
    device.besideCollectives = leftBeside(figureOf(framework, "channelHolds"), device, links);
}

/// "37.4%"
std::string percent(double share)
{
    char text[16];
    std::snprintf(text, sizeof text, "%.3g%%", 100 * share);
    return text;
}

} // namespace

std::vector<std::string> frameworkNames()
{
    std::vector<std::string> names;
    for (const EmbeddedProfile &profile : embeddedFrameworks())
        names.emplace_back(profile.name);
    return names;
}

std::string meaningOfFramework(std::string_view name)
{
    return profileOfFramework(name).value("meaning", std::string());
}

std::vector<FrameworkAssumption> assumptionsOfFramework(std::string_view name)
{
    const Json framework = profileOfFramework(name);
    if (framework.is_null())
        return {};
    std::vector<FrameworkAssumption> list;
    const Sourced host = figureOf(framework, "hostTime");
    char time[64];
    std::snprintf(time, sizeof time, "a launch takes the host %.3g us", 1e6 * host.value);
    list.push_back(
        {host.value > 0 ? time : "the host launches kernels as fast as the device takes them", host.source});
    const Sourced unfused = figureOf(framework, "unfused");
    list.push_back({unfused.value > 0 ? "every element-wise operator is a launch by itself"
                                      : "element-wise operators that follow one another are one launch",
        unfused.source});
    const Json composed = framework.value("composed", Json::object());
    for (const auto &[kind, each] : composed.items()) {
        const Sourced forward = figureOf(each, "forwardKernels");
        const Sourced backward = figureOf(each, "backwardKernels");
        char words[128];
        std::snprintf(words, sizeof words, "%.40s is %g kernels forward, %g backward", kind.c_str(),
            forward.value, backward.value);
        list.push_back({words, forward.source + "; " + backward.source});
    }
    for (const Json &each : framework.value("attention", Json::array())) {
        const Sourced forward = figureOf(each, "forward");
        const Sourced backward = figureOf(each, "backward");
        list.push_back({"attention on " + each.at("architecture").get<std::string>() + " reaches "
                + percent(forward.value) + " of peak forward, " + percent(backward.value) + " backward",
            forward.source + "; " + backward.source});
    }
    if (!framework.contains("attention"))
        list.push_back({"attention reaches what timings of its kernels say", {}});
    const Sourced holds = figureOf(framework, "channelHolds");
    char held[112];
    std::snprintf(held, sizeof held,
        "a channel of a collective holds %g of the multiprocessors of what is computed beside it",
        holds.value);
    list.push_back({holds.value > 0 ? held : "collectives slow nothing down that is computed beside them",
        holds.source});
    return list;
}

Result<Cluster> withFramework(Cluster cluster, std::string_view name)
{
    if (name.empty())
        return cluster;
    const Json framework = profileOfFramework(name);
    if (framework.is_null()) {
        std::string known;
        for (const std::string &each : frameworkNames())
            known += (known.empty() ? "" : ", ") + each;
        return Error{ErrorCode::NotFound, "there is no framework \"" + std::string(name.substr(0, 60)) + "\"",
            "known are " + known, "framework:" + std::string(name.substr(0, 60))};
    }
    if (!cluster.framework.empty() && cluster.framework != name)
        return Error{ErrorCode::InvalidInput,
            "the cluster has the figures of the framework \"" + cluster.framework
                + "\", which another one would replace only in part",
            "name the cluster without a framework, or take one without \"framework\" in its file",
            "framework:" + std::string(name)};
    apply(framework, cluster.device, cluster.links);
    for (DeviceClass &other : cluster.otherClasses)
        apply(framework, other.device, other.links);
    cluster.framework = std::string(name);
    cluster.name = splitFramework(cluster.name).first + "+" + cluster.framework;
    return cluster;
}

std::pair<std::string, std::string> splitFramework(std::string_view word)
{
    const std::size_t slash = word.rfind('/');
    const std::size_t plus = word.find('+', slash == std::string_view::npos ? 0 : slash);
    if (plus == std::string_view::npos)
        return {std::string(word), {}};
    const std::size_t end = std::min(word.find(':', plus), word.size());
    return {std::string(word.substr(0, plus)) + std::string(word.substr(end)),
        std::string(word.substr(plus + 1, end - plus - 1))};
}

std::string joinFramework(std::string_view cluster, std::string_view framework)
{
    std::string word(cluster);
    return framework.empty() ? word : word + "+" + std::string(framework);
}

} // namespace planloom
