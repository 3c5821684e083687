#include "engine/hardware/cluster_json.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <span>
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
    Figure<DeviceModel>{"multiprocessors", &DeviceModel::multiprocessors, Limit::Positive, true},
    Figure<DeviceModel>{"attentionEfficiency", &DeviceModel::attentionEfficiency, Limit::Share, true},
    Figure<DeviceModel>{
        "attentionBackwardEfficiency", &DeviceModel::attentionBackwardEfficiency, Limit::Share, true},
    Figure<DeviceModel>{"memory", &DeviceModel::memory, Limit::Positive},
    Figure<DeviceModel>{"memoryBandwidth", &DeviceModel::memoryBandwidth, Limit::Positive},
    Figure<DeviceModel>{"memoryEfficiency", &DeviceModel::memoryEfficiency, Limit::Share},
    Figure<DeviceModel>{"launchLatency", &DeviceModel::launchLatency, Limit::NonNegative},
};

constexpr std::array kLinkFigures{
    Figure<Interconnect>{"intraBandwidth", &Interconnect::intraBandwidth, Limit::Positive},
    Figure<Interconnect>{"intraChannels", &Interconnect::intraChannels, Limit::Positive},
    Figure<Interconnect>{"intraLatency", &Interconnect::intraLatency, Limit::NonNegative},
    Figure<Interconnect>{"interBandwidth", &Interconnect::interBandwidth, Limit::Positive},
    Figure<Interconnect>{"interLatency", &Interconnect::interLatency, Limit::NonNegative},
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
            return wrong(at(name), std::string("the field \"") + name + "\" is missing");
        m_known.push_back(name);
        return &*found;
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

    Result<std::int32_t> count(const char *name)
    {
        TRY(const Json *value, require(name));
        const bool fits = value->is_number_integer() && *value >= 1 && *value <= kMostDevices;
        if (!fits)
            return wrong(at(name),
                "expected a whole number from 1 to " + std::to_string(kMostDevices) + ", found "
                    + brief(*value));
        return value->get<std::int32_t>();
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

Result<DeviceModel> readDevice(const Json &value)
{
    TRY(ObjectReader reader, ObjectReader::open(value, "/device"));
    DeviceModel device;
    TRY(device.name, reader.text("name"));
    TRY_VOID(readFigures(reader, kDeviceFigures, device));
    TRY_VOID(reader.finish());
    return device;
}

Result<Interconnect> readLinks(const Json &value)
{
    TRY(ObjectReader reader, ObjectReader::open(value, "/links"));
    Interconnect links;
    TRY(const std::string architecture, reader.text("architecture"));
    bool found = false;
    std::string names;
    for (const auto &[name, kind] : kArchitectures) {
        names += (names.empty() ? "" : ", ") + std::string(name);
        if (architecture == name) {
            links.architecture = kind;
            found = true;
        }
    }
    if (!found)
        return wrong(reader.at("architecture"),
            "expected one of " + names + ", found \"" + architecture.substr(0, 60) + "\"");
    TRY(links.devicesPerNode, reader.count("devicesPerNode"));
    TRY_VOID(readFigures(reader, kLinkFigures, links));
    TRY_VOID(reader.finish());
    return links;
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
    TRY(const Json *device, reader.require("device"));
    TRY(cluster.device, readDevice(*device));
    TRY(const Json *links, reader.require("links"));
    TRY(cluster.links, readLinks(*links));
    if (!deviceCount) {
        TRY(cluster.deviceCount, reader.count("deviceCount"));
    } else {
        reader.find("deviceCount");
        cluster.deviceCount = *deviceCount;
    }
    TRY_VOID(reader.finish());
    return cluster;
}

std::string toJson(const Cluster &cluster)
{
    nlohmann::json device{{"name", cluster.device.name}};
    writeFigures(device, kDeviceFigures, cluster.device);
    nlohmann::json links{{"devicesPerNode", cluster.links.devicesPerNode}};
    for (const auto &[name, kind] : kArchitectures) {
        if (kind == cluster.links.architecture)
            links["architecture"] = name;
    }
    writeFigures(links, kLinkFigures, cluster.links);
    const nlohmann::json document{{"format", "planloom-cluster"}, {"version", 1}, {"name", cluster.name},
        {"deviceCount", cluster.deviceCount}, {"device", device}, {"links", links}};
    return document.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace planloom
