#include "engine/hardware/cluster_json.h"

#include "engine/base/nearest_name.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

using Json = nlohmann::json;

enum class Limit { NonNegative, Positive, Share };

template<typename Owner> struct Figure {
    const char *name;
    Sourced Owner::*member;
    Limit limit;
    bool optional = false; ///< Missing is 0 of no source, and written so.
};

constexpr std::array kDeviceFigures{
    Figure<DeviceModel>{"float32Flops", &DeviceModel::float32Flops, Limit::Positive},
    Figure<DeviceModel>{"tensorFloat32Flops", &DeviceModel::tensorFloat32Flops, Limit::NonNegative},
    Figure<DeviceModel>{"float16Flops", &DeviceModel::float16Flops, Limit::NonNegative},
    Figure<DeviceModel>{"float64Flops", &DeviceModel::float64Flops, Limit::NonNegative},
    Figure<DeviceModel>{"float8Flops", &DeviceModel::float8Flops, Limit::NonNegative, true},
    Figure<DeviceModel>{"productEfficiency", &DeviceModel::productEfficiency, Limit::Share},
    Figure<DeviceModel>{"tileEfficiency", &DeviceModel::tileEfficiency, Limit::Share, true},
    Figure<DeviceModel>{"groupedEfficiency", &DeviceModel::groupedEfficiency, Limit::Share, true},
    Figure<DeviceModel>{"multiprocessors", &DeviceModel::multiprocessors, Limit::Positive, true},
    Figure<DeviceModel>{"attentionEfficiency", &DeviceModel::attentionEfficiency, Limit::Share, true},
    Figure<DeviceModel>{
        "attentionBackwardEfficiency", &DeviceModel::attentionBackwardEfficiency, Limit::Share, true},
    Figure<DeviceModel>{"attentionKeysLost", &DeviceModel::attentionKeysLost, Limit::Positive, true},
    Figure<DeviceModel>{"memory", &DeviceModel::memory, Limit::Positive},
    Figure<DeviceModel>{"memoryBandwidth", &DeviceModel::memoryBandwidth, Limit::Positive},
    Figure<DeviceModel>{"memoryEfficiency", &DeviceModel::memoryEfficiency, Limit::Share},
    Figure<DeviceModel>{"launchLatency", &DeviceModel::launchLatency, Limit::NonNegative},
    Figure<DeviceModel>{"hostTime", &DeviceModel::hostTime, Limit::Positive, true},
    Figure<DeviceModel>{"unfused", &DeviceModel::unfused, Limit::Share, true},
    Figure<DeviceModel>{"besideCollectives", &DeviceModel::besideCollectives, Limit::Share, true},
    Figure<DeviceModel>{"hostMemory", &DeviceModel::hostMemory, Limit::Positive, true},
    Figure<DeviceModel>{"hostBandwidth", &DeviceModel::hostBandwidth, Limit::Positive, true},
    Figure<DeviceModel>{"hostLatency", &DeviceModel::hostLatency, Limit::NonNegative, true},
};

constexpr std::array kFormatFigures{
    Figure<FormatEfficiency>{"product", &FormatEfficiency::product, Limit::Share, true},
    Figure<FormatEfficiency>{"tile", &FormatEfficiency::tile, Limit::Share, true},
    Figure<FormatEfficiency>{"grouped", &FormatEfficiency::grouped, Limit::Share, true},
    Figure<FormatEfficiency>{"attention", &FormatEfficiency::attention, Limit::Share, true},
    Figure<FormatEfficiency>{"attentionBackward", &FormatEfficiency::attentionBackward, Limit::Share, true},
};

constexpr std::array kComposedFigures{
    Figure<ComposedOperator>{"forward", &ComposedOperator::forward, Limit::Positive},
    Figure<ComposedOperator>{"backward", &ComposedOperator::backward, Limit::Positive},
    Figure<ComposedOperator>{"forwardKernels", &ComposedOperator::forwardKernels, Limit::Positive},
    Figure<ComposedOperator>{"backwardKernels", &ComposedOperator::backwardKernels, Limit::Positive},
};

/// What files call the formats that multipliers have rates of.
constexpr std::array<std::pair<const char *, DataType>, 5> kFormats{{
    {"float64", DataType::Float64},
    {"float32", DataType::Float32},
    {"tensorFloat32", DataType::TensorFloat32},
    {"float16", DataType::Float16},
    {"float8", DataType::Float8E4M3},
}};

/// Those that a class of devices may have of its own.
constexpr std::array kLinkFigures{
    Figure<Interconnect>{"intraBandwidth", &Interconnect::intraBandwidth, Limit::Positive},
    Figure<Interconnect>{"intraChannels", &Interconnect::intraChannels, Limit::Positive},
    Figure<Interconnect>{"intraLatency", &Interconnect::intraLatency, Limit::NonNegative},
    Figure<Interconnect>{"startLatency", &Interconnect::startLatency, Limit::Positive, true},
    Figure<Interconnect>{"hopLatency", &Interconnect::hopLatency, Limit::Positive, true},
    Figure<Interconnect>{"ownCopyBandwidth", &Interconnect::ownCopyBandwidth, Limit::Positive, true},
    Figure<Interconnect>{"allToAllBandwidth", &Interconnect::allToAllBandwidth, Limit::Positive, true},
    Figure<Interconnect>{"allToAllLatency", &Interconnect::allToAllLatency, Limit::Positive, true},
    Figure<Interconnect>{"interBandwidth", &Interconnect::interBandwidth, Limit::Positive},
    Figure<Interconnect>{"interLatency", &Interconnect::interLatency, Limit::NonNegative},
    Figure<Interconnect>{"interPorts", &Interconnect::interPorts, Limit::Positive, true},
};

constexpr std::array<std::pair<const char *, LinkArchitecture>, 6> kArchitectures{{
    {"volta", LinkArchitecture::Volta},
    {"ampere", LinkArchitecture::Ampere},
    {"hopper", LinkArchitecture::Hopper},
    {"blackwell", LinkArchitecture::Blackwell},
    {"pcie", LinkArchitecture::PcieOnly},
    {"shared-memory", LinkArchitecture::SharedMemory},
}};

Error wrong(std::string pointer, std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
        pointer.empty() ? "/" : std::move(pointer)};
}

/// Reads the members of one object, each once; `finish` complains of those nobody asked for.
class ObjectReader
{
public:
    static Result<ObjectReader> open(const Json &value, std::string pointer)
    {
        if (!value.is_object())
            return wrong(pointer, std::string("expected an object, found ") + value.type_name());
        return ObjectReader(value, std::move(pointer));
    }

    Result<const Json *> require(const char *name)
    {
        const auto found = m_value->find(name);
        if (found == m_value->end())
            return wrong(at(name), std::string("the field \"") + name + "\" is missing", misspelt(name));
        m_known.push_back(name);
        return &*found;
    }

    /// What is there in place of a field that is missing; empty where nothing is nearly called so.
    std::string misspelt(const char *name) const
    {
        std::vector<std::string_view> unread;
        for (auto each = m_value->begin(); each != m_value->end(); ++each)
            if (std::find(m_known.begin(), m_known.end(), each.key()) == m_known.end())
                unread.push_back(each.key());
        if (didYouMean(name, unread).empty())
            return {};
        return "\"" + nearestNames(name, unread).front().substr(0, 60) + "\" is there: should that be \""
            + name + "\"?";
    }

    const Json *find(const char *name)
    {
        const auto found = m_value->find(name);
        if (found == m_value->end())
            return nullptr;
        m_known.push_back(name);
        return &*found;
    }

    Result<std::string> text(const char *name)
    {
        TRY(const Json *value, require(name));
        if (!value->is_string() || value->get_ref<const std::string &>().empty())
            return wrong(at(name), "expected a text that is not empty");
        return value->get<std::string>();
    }

    Result<std::int32_t> count(const char *name, std::int32_t least = 1)
    {
        TRY(const Json *value, require(name));
        const bool fits = value->is_number_integer() && *value >= least && *value <= kMostDevices;
        if (!fits)
            return wrong(at(name),
                "expected a whole number from " + std::to_string(least) + " to "
                    + std::to_string(kMostDevices) + ", found " + brief(*value));
        return value->get<std::int32_t>();
    }

    /// An array, empty where it is missing.
    Result<std::vector<const Json *>> list(const char *name)
    {
        std::vector<const Json *> items;
        const Json *value = find(name);
        if (!value)
            return items;
        if (!value->is_array())
            return wrong(at(name), std::string("expected an array, found ") + value->type_name());
        for (const Json &item : *value)
            items.push_back(&item);
        return items;
    }

    Result<Sourced> figure(const char *name, Limit limit)
    {
        TRY(const Json *value, require(name));
        TRY(ObjectReader reader, open(*value, at(name)));
        TRY(const Json *number, reader.require("value"));
        Sourced figure;
        if (!number->is_number())
            return wrong(reader.at("value"), std::string("expected a number, found ") + number->type_name());
        figure.value = number->get<double>();
        if (!std::isfinite(figure.value) || figure.value < 0
            || (limit != Limit::NonNegative && figure.value == 0)
            || (limit == Limit::Share && figure.value > 1)) {
            const char *range = limit == Limit::Share ? "above 0 and at most 1"
                : limit == Limit::Positive            ? "above 0"
                                                      : "of at least 0";
            return wrong(
                reader.at("value"), std::string("expected a number ") + range + ", found " + brief(*number));
        }
        TRY(figure.source, reader.text("source"));
        TRY_VOID(reader.finish());
        return figure;
    }

    Result<void> finish() const
    {
        for (const auto &[name, value] : m_value->items()) {
            bool known = false;
            for (const char *other : m_known)
                known = known || name == other;
            if (!known)
                return wrong(at(name), "the field \"" + name.substr(0, 60) + "\" is unknown",
                    "resources/schema/cluster.json lists the fields");
        }
        return {};
    }

    std::string at(const std::string &name) const { return m_pointer + "/" + name.substr(0, 60); }

    static std::string brief(const Json &value)
    {
        return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
    }

private:
    ObjectReader(const Json &value, std::string pointer)
        : m_value(&value)
        , m_pointer(std::move(pointer))
    {
    }

    const Json *m_value;
    std::string m_pointer;
    std::vector<const char *> m_known{};
};

template<typename Owner, std::size_t N>
Result<void> readFigures(ObjectReader &reader, const std::array<Figure<Owner>, N> &figures, Owner &owner)
{
    for (const auto &figure : figures) {
        if (figure.optional && !reader.find(figure.name))
            continue;
        TRY(owner.*figure.member, reader.figure(figure.name, figure.limit));
    }
    return {};
}

Result<std::vector<FormatEfficiency>> readFormats(const Json &value, const std::string &pointer)
{
    TRY(ObjectReader reader, ObjectReader::open(value, pointer));
    std::vector<FormatEfficiency> formats;
    for (const auto &[name, format] : kFormats) {
        const Json *own = reader.find(name);
        if (!own)
            continue;
        TRY(ObjectReader figures, ObjectReader::open(*own, reader.at(name)));
        FormatEfficiency efficiency{.format = format};
        TRY_VOID(readFigures(figures, kFormatFigures, efficiency));
        TRY_VOID(figures.finish());
        formats.push_back(std::move(efficiency));
    }
    TRY_VOID(reader.finish());
    return formats;
}

Result<std::vector<ComposedOperator>> readComposed(const Json &value, const std::string &pointer)
{
    if (!value.is_object())
        return wrong(pointer, std::string("expected an object, found ") + value.type_name());
    std::vector<ComposedOperator> composed;
    for (const auto &[name, own] : value.items()) {
        const auto kind = operatorKindNamed(name);
        if (!kind)
            return wrong(pointer + "/" + name, "there is no kind of operator called so");
        TRY(ObjectReader figures, ObjectReader::open(own, pointer + "/" + name));
        ComposedOperator one{.kind = *kind};
        TRY_VOID(readFigures(figures, kComposedFigures, one));
        TRY_VOID(figures.finish());
        composed.push_back(std::move(one));
    }
    return composed;
}

Result<DeviceModel> readDevice(const Json &value, std::string pointer)
{
    TRY(ObjectReader reader, ObjectReader::open(value, std::move(pointer)));
    DeviceModel device;
    TRY(device.name, reader.text("name"));
    TRY(const std::vector<const Json *> aliases, reader.list("aliases"));
    for (std::size_t a = 0; a < aliases.size(); ++a) {
        if (!aliases[a]->is_string() || aliases[a]->get_ref<const std::string &>().empty())
            return wrong(reader.at("aliases/" + std::to_string(a)), "expected a text that is not empty");
        device.aliases.push_back(aliases[a]->get<std::string>());
    }
    TRY_VOID(readFigures(reader, kDeviceFigures, device));
    if (const Json *formats = reader.find("formats")) {
        TRY(device.formats, readFormats(*formats, reader.at("formats")));
    }
    if (const Json *composed = reader.find("composed")) {
        TRY(device.composed, readComposed(*composed, reader.at("composed")));
    }
    TRY_VOID(reader.finish());
    return device;
}

Result<LinkArchitecture> readArchitecture(ObjectReader &reader)
{
    TRY(const std::string architecture, reader.text("architecture"));
    std::string names;
    for (const auto &[name, kind] : kArchitectures) {
        names += (names.empty() ? "" : ", ") + std::string(name);
        if (architecture == name)
            return kind;
    }
    return wrong(reader.at("architecture"),
        "expected one of " + names + ", found \"" + architecture.substr(0, 60) + "\"");
}

/// A whole number of cards that deals the devices of a node out evenly.
Result<void> checkPorts(const ObjectReader &reader, const Interconnect &links)
{
    const double ports = links.interPorts.value;
    if (ports == 0
        || (ports == std::floor(ports) && ports <= links.devicesPerNode
            && links.devicesPerNode % static_cast<std::int32_t>(ports) == 0))
        return {};
    return wrong(reader.at("interPorts/value"),
        "expected a divisor of the " + std::to_string(links.devicesPerNode) + " devices of a node, found "
            + ObjectReader::brief(Json(ports)));
}

Result<LinkLevel> readLevel(const Json &value, std::string pointer)
{
    TRY(ObjectReader reader, ObjectReader::open(value, std::move(pointer)));
    LinkLevel level;
    TRY(level.name, reader.text("name"));
    TRY(level.size, reader.count("size"));
    TRY(level.bandwidth, reader.figure("bandwidth", Limit::Positive));
    TRY(level.latency, reader.figure("latency", Limit::NonNegative));
    TRY_VOID(reader.finish());
    return level;
}

Result<Interconnect> readLinks(const Json &value)
{
    TRY(ObjectReader reader, ObjectReader::open(value, "/links"));
    Interconnect links;
    TRY(links.architecture, readArchitecture(reader));
    TRY(links.devicesPerNode, reader.count("devicesPerNode"));
    TRY_VOID(readFigures(reader, kLinkFigures, links));
    TRY_VOID(checkPorts(reader, links));
    TRY(const std::vector<const Json *> levels, reader.list("levels"));
    if (levels.size() > kMostOuterLevels)
        return wrong(reader.at("levels"),
            "expected at most " + std::to_string(kMostOuterLevels) + " levels, found "
                + std::to_string(levels.size()));
    for (std::size_t l = 0; l < levels.size(); ++l) {
        TRY(LinkLevel level, readLevel(*levels[l], "/links/levels/" + std::to_string(l)));
        links.outer.push_back(std::move(level));
    }
    TRY_VOID(reader.finish());
    return links;
}

/// What a class says of its links; all else is the cluster's.
Result<Interconnect> readOwnLinks(const Json *value, std::string pointer, const Interconnect &cluster)
{
    Interconnect links = cluster;
    if (!value)
        return links;
    TRY(ObjectReader reader, ObjectReader::open(*value, std::move(pointer)));
    if (reader.find("architecture")) {
        TRY(links.architecture, readArchitecture(reader));
    }
    for (const auto &figure : kLinkFigures) {
        if (reader.find(figure.name)) {
            TRY(links.*figure.member, reader.figure(figure.name, figure.limit));
        }
    }
    TRY_VOID(checkPorts(reader, links));
    TRY_VOID(reader.finish());
    return links;
}

/// @param unit  devices in one of what the range counts
Result<DeviceRange> readRange(const Json &value, std::string pointer, std::int32_t unit)
{
    TRY(ObjectReader reader, ObjectReader::open(value, std::move(pointer)));
    DeviceRange range;
    TRY(range.first, reader.count("first", 0));
    TRY(range.count, reader.count("count"));
    if (reader.find("every")) {
        TRY(range.every, reader.count("every", range.count));
    }
    TRY_VOID(reader.finish());
    const auto times = [unit](std::int32_t number) { // No cluster is larger than that.
        return static_cast<std::int32_t>(
            std::min<std::int64_t>(std::int64_t{number} * unit, 2 * kMostDevices));
    };
    return DeviceRange{times(range.first), times(range.count), times(range.every)};
}

Result<DeviceClass> readClass(const Json &value, const std::string &pointer, const Interconnect &links)
{
    TRY(ObjectReader reader, ObjectReader::open(value, pointer));
    DeviceClass own;
    TRY(const Json *device, reader.require("device"));
    TRY(own.device, readDevice(*device, pointer + "/device"));
    TRY(own.links, readOwnLinks(reader.find("links"), pointer + "/links", links));
    for (const auto &[name, unit] : {std::pair{"nodes", links.devicesPerNode}, std::pair{"devices", 1}}) {
        TRY(const std::vector<const Json *> ranges, reader.list(name));
        for (std::size_t r = 0; r < ranges.size(); ++r) {
            TRY(const DeviceRange range,
                readRange(*ranges[r], pointer + "/" + name + "/" + std::to_string(r), unit));
            own.where.push_back(range);
        }
    }
    if (own.where.empty())
        return wrong(
            pointer + "/nodes", "expected the nodes of the class, or its \"devices\"; found neither");
    TRY_VOID(reader.finish());
    return own;
}

/// Names tell classes apart, and no device is of two of them.
Result<void> checkClasses(const Cluster &cluster, bool allThere)
{
    std::vector<std::int32_t> classOf(static_cast<std::size_t>(cluster.deviceCount), 0);
    for (std::size_t c = 0; c < cluster.otherClasses.size(); ++c) {
        const DeviceClass &own = cluster.otherClasses[c];
        const std::string pointer = "/classes/" + std::to_string(c);
        for (std::size_t other = 0; other <= c; ++other)
            if (cluster.deviceOfClass(static_cast<std::int32_t>(other)).name == own.device.name)
                return wrong(pointer + "/device/name",
                    "expected a name of its own, found that of another class, \"" + own.device.name + "\"");
        bool any = false;
        for (const DeviceRange &range : own.where)
            for (std::int32_t d = range.first; d < cluster.deviceCount; ++d) {
                if (!range.has(d))
                    continue;
                any = true;
                std::int32_t &there = classOf[static_cast<std::size_t>(d)];
                if (there != 0)
                    return wrong(pointer,
                        "device " + std::to_string(d) + " is of class \"" + cluster.deviceOfClass(there).name
                            + "\" already",
                        "the ranges of classes may not overlap");
                there = static_cast<std::int32_t>(c) + 1;
            }
        if (allThere && !any)
            return wrong(pointer,
                "the class has none of the cluster's " + std::to_string(cluster.deviceCount) + " devices",
                "numbers of nodes and devices begin at 0");
    }
    return {};
}

template<typename Owner, std::size_t N>
void writeFigures(Json &object, const std::array<Figure<Owner>, N> &figures, const Owner &owner)
{
    for (const auto &figure : figures) {
        const Sourced &sourced = owner.*figure.member;
        if (figure.optional && sourced == Sourced{})
            continue;
        object[figure.name] = {{"value", sourced.value}, {"source", sourced.source}};
    }
}

} // namespace

const char *nameOf(LinkArchitecture architecture)
{
    return std::find_if(kArchitectures.begin(), kArchitectures.end(), [&](const auto &each) {
        return each.second == architecture;
    })->first;
}

Result<Cluster> clusterFromJson(std::string_view text, std::optional<std::int32_t> deviceCount)
{
    Json document;
    try {
        document = Json::parse(text.begin(), text.end());
    } catch (const nlohmann::json::exception &failure) { // Also numbers out of range.
        return Error{
            ErrorCode::InvalidInput, std::string("the cluster is not JSON: ") + failure.what(), {}, "/"};
    }
    TRY(ObjectReader reader, ObjectReader::open(document, ""));
    TRY(const std::string format, reader.text("format"));
    if (format != "planloom-cluster")
        return wrong("/format", "expected \"planloom-cluster\", found \"" + format.substr(0, 60) + "\"");
    TRY(const Json *version, reader.require("version"));
    if (*version != 1)
        return wrong("/version", "expected version 1, found " + ObjectReader::brief(*version));
    Cluster cluster;
    TRY(cluster.name, reader.text("name"));
    if (reader.find("framework")) {
        TRY(cluster.framework, reader.text("framework"));
    }
    TRY(const Json *device, reader.require("device"));
    TRY(cluster.device, readDevice(*device, "/device"));
    TRY(const Json *links, reader.require("links"));
    TRY(cluster.links, readLinks(*links));
    if (!deviceCount) {
        TRY(cluster.deviceCount, reader.count("deviceCount"));
    } else {
        reader.find("deviceCount");
        cluster.deviceCount = *deviceCount;
    }
    if (reader.find("communicationQueues")) {
        TRY(const std::string queues, reader.text("communicationQueues"));
        if (queues != "own" && queues != "one")
            return wrong("/communicationQueues",
                "expected \"own\" or \"one\", found \"" + queues.substr(0, 60) + "\"");
        cluster.communicationQueues = queues == "one" ? CommunicationQueues::One : CommunicationQueues::Own;
    }
    if (const Json *blocking = reader.find("blockingSends")) {
        if (!blocking->is_boolean())
            return wrong(
                "/blockingSends", std::string("expected true or false, found ") + blocking->type_name());
        cluster.blockingSends = blocking->get<bool>();
    }
    TRY(const std::vector<const Json *> classes, reader.list("classes"));
    if (classes.size() >= kMostDeviceClasses)
        return wrong("/classes",
            "expected at most " + std::to_string(kMostDeviceClasses - 1)
                + " classes beside \"device\", found " + std::to_string(classes.size()));
    for (std::size_t c = 0; c < classes.size(); ++c) {
        TRY(DeviceClass own, readClass(*classes[c], "/classes/" + std::to_string(c), cluster.links));
        cluster.otherClasses.push_back(std::move(own));
    }
    TRY_VOID(checkClasses(cluster, !deviceCount));
    TRY_VOID(reader.finish());
    return cluster;
}

std::string toJson(const Cluster &cluster)
{
    const auto deviceJson = [](const DeviceModel &model) {
        nlohmann::json device{{"name", model.name}};
        if (!model.aliases.empty())
            device["aliases"] = model.aliases;
        writeFigures(device, kDeviceFigures, model);
        for (const FormatEfficiency &efficiency : model.formats)
            for (const auto &[name, format] : kFormats)
                if (format == efficiency.format) {
                    nlohmann::json own = nlohmann::json::object();
                    writeFigures(own, kFormatFigures, efficiency);
                    device["formats"][name] = std::move(own);
                }
        for (const ComposedOperator &one : model.composed) {
            nlohmann::json own = nlohmann::json::object();
            writeFigures(own, kComposedFigures, one);
            device["composed"][nameOf(one.kind)] = std::move(own);
        }
        return device;
    };
    const auto linksJson = [](const Interconnect &links) {
        nlohmann::json object = nlohmann::json::object();
        object["architecture"] = nameOf(links.architecture);
        writeFigures(object, kLinkFigures, links);
        return object;
    };
    nlohmann::json links = linksJson(cluster.links);
    links["devicesPerNode"] = cluster.links.devicesPerNode;
    for (const LinkLevel &level : cluster.links.outer)
        links["levels"].push_back({{"name", level.name}, {"size", level.size},
            {"bandwidth", {{"value", level.bandwidth.value}, {"source", level.bandwidth.source}}},
            {"latency", {{"value", level.latency.value}, {"source", level.latency.source}}}});
    nlohmann::json document{{"format", "planloom-cluster"}, {"version", 1}, {"name", cluster.name},
        {"deviceCount", cluster.deviceCount}, {"device", deviceJson(cluster.device)}, {"links", links}};
    if (!cluster.framework.empty())
        document["framework"] = cluster.framework;
    if (cluster.communicationQueues == CommunicationQueues::One)
        document["communicationQueues"] = "one";
    if (cluster.blockingSends)
        document["blockingSends"] = true;
    for (const DeviceClass &own : cluster.otherClasses) {
        nlohmann::json object{{"device", deviceJson(own.device)}, {"links", linksJson(own.links)}};
        for (const DeviceRange &range : own.where) {
            nlohmann::json place{{"first", range.first}, {"count", range.count}};
            if (range.every > 0)
                place["every"] = range.every;
            object["devices"].push_back(std::move(place));
        }
        document["classes"].push_back(std::move(object));
    }
    return document.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace planloom
