#include "widgets/main/samples.h"

#include <QtCore/QDir>
#include <QtCore/QFile>

#include <nlohmann/json.hpp>

namespace planloom {

Result<Sample> sampleFromJson(const std::string &name, const std::string &text)
{
    const auto document = nlohmann::json::parse(text, nullptr, false);
    if (!document.is_object())
        return Error{ErrorCode::InvalidInput, "a sample is a JSON object", {}, "/"};
    Sample sample;
    sample.name = name;
    for (const auto &[key, field] : {std::pair{"title", &Sample::title}, {"about", &Sample::about},
             {"model", &Sample::model}, {"cluster", &Sample::cluster}, {"gallery", &Sample::gallery}}) {
        const auto found = document.find(key);
        if (found == document.end() || !found->is_string())
            return Error{ErrorCode::InvalidInput, std::string("a sample needs the text \"") + key + "\"", {},
                std::string("/") + key};
        sample.*field = found->get<std::string>();
    }
    const auto devices = document.find("devices");
    if (devices == document.end() || !devices->is_number_integer() || *devices < 1 || *devices > 16384)
        return Error{ErrorCode::InvalidInput, "a sample has from 1 to 16384 devices", {}, "/devices"};
    sample.devices = devices->get<std::int32_t>();
    return sample;
}

const std::vector<Sample> &samples()
{
    static const std::vector<Sample> kSamples = [] {
        std::vector<Sample> result;
        const QDir folder(QStringLiteral(":/planloom/samples"));
        // Files are numbered by the order in which they are shown: "1-gpt2.json".
        for (const QString &file : folder.entryList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
            QFile resource(folder.filePath(file));
            if (!resource.open(QIODevice::ReadOnly))
                continue;
            const QString name = file.section(QLatin1Char('-'), 1).section(QLatin1Char('.'), 0, 0);
            if (auto sample = sampleFromJson(name.toStdString(), resource.readAll().toStdString()))
                result.push_back(*std::move(sample));
        }
        return result;
    }();
    return kSamples;
}

Result<Sample> sampleNamed(const std::string &name)
{
    std::string known;
    for (const Sample &sample : samples()) {
        if (sample.name == name)
            return sample;
        known += (known.empty() ? "" : ", ") + sample.name;
    }
    return Error{ErrorCode::NotFound, "there is no sample \"" + name + "\"", "known samples: " + known};
}

} // namespace planloom
