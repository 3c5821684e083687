#include "engine/frontend/torch/pt2_archive.h"

#include "engine/base/zip.h"
#include "engine/frontend/torch/pt2_reader.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

namespace {

constexpr std::uint64_t kLeastJsonLimit = std::uint64_t{4} << 20U;
constexpr std::uint64_t kMostRatio = 100; ///< Of unpacked JSON to the whole archive.
constexpr const char *kSaveAnew = "save it anew with torch.export.save";
constexpr const char *kWithoutWeights = "planloom_without_weights"; ///< Marks what `withoutWeights` makes.
constexpr std::string_view kOldProgram = "serialized_exported_program.json";
constexpr const char *kWayOut =
    "export the module with its loss by torch.export.export, and save that with torch.export.save";

/// Reads the entries of one archive below its root folder.
class Pt2Opener
{
public:
    Pt2Opener(ZipArchive zip, std::string where, std::optional<ZipArchive> beside)
        : m_zip(std::move(zip))
        , m_beside(std::move(beside))
        , m_where(std::move(where))
        , m_limit(std::max(kLeastJsonLimit, m_zip.source().size() * kMostRatio))
    {
    }

    Result<Pt2Archive> run();

private:
    Error invalid(std::string message, const std::string &entry) const
    {
        return {ErrorCode::InvalidInput, std::move(message), kSaveAnew,
            entry.empty() ? m_where : m_where + "/" + entry};
    }
    Result<void> checkNames();
    const ZipEntry *find(const std::string &name) const
    {
        const auto found = m_byName.find(name);
        return found == m_byName.end() ? nullptr : found->second;
    }
    Result<std::string> text(const ZipEntry &entry) const;
    Result<const ZipEntry *> findProgram();
    Error noProgram() const;
    Result<void> checkByteOrder() const;
    Result<void> locate(Pt2Archive &archive, const std::string &folder, const char *suffix) const;

    const ZipEntry *findBeside(const std::string &name) const;
    Result<void> add(Pt2Archive &archive, const std::string &name, Pt2Payload &payload,
        const std::string &path, const std::string &list) const;

    ZipArchive m_zip;
    std::optional<ZipArchive> m_beside; ///< With the weights that were left out of `m_zip`.
    std::string m_where;
    std::uint64_t m_limit = 0;
    std::map<std::string, const ZipEntry *> m_byName{};
    std::string m_root{}; ///< "model/", or empty.
    std::string m_model{}; ///< "model" of models/model.json.
};

bool isOrdinary(const std::string &name)
{
    const bool controls = std::any_of(name.begin(), name.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20U || byte == 0x7fU || c == '\\';
    });
    const std::string bounded = "/" + name + "/";
    return !name.empty() && !controls && name.front() != '/' && bounded.find("/../") == std::string::npos;
}

Result<void> Pt2Opener::checkNames()
{
    for (const ZipEntry &entry : m_zip.entries()) {
        if (!isOrdinary(entry.name))
            return invalid("an entry's name has control characters, or leads out of the archive", {});
        if (!m_byName.emplace(entry.name, &entry).second)
            return invalid("two entries have this name", entry.name);
    }
    return m_zip.checkOverlaps();
}

Result<std::string> Pt2Opener::text(const ZipEntry &entry) const
{
    TRY(const auto bytes, m_zip.content(entry, m_limit));
    return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()); // any type may alias char
}

/// What else this archive is, and what to do then.
Error Pt2Opener::noProgram() const
{
    bool pickled = false;
    bool script = false;
    bool arrays = false;
    for (const auto &[name, entry] : m_byName) {
        pickled = pickled || name == "data.pkl" || name.ends_with("/data.pkl");
        script = script || name == "constants.pkl" || name.ends_with("/constants.pkl");
        arrays = arrays || name.ends_with(".npy");
    }
    if (script)
        return {ErrorCode::NotSupported, "this is a TorchScript model, which holds code and not a graph",
            kWayOut, m_where};
    if (pickled)
        return {ErrorCode::NotSupported,
            "this is a PyTorch checkpoint, which holds weights and not the model that reads them", kWayOut,
            m_where};
    if (arrays)
        return {ErrorCode::InvalidInput, "this is an archive of NumPy arrays, not a model",
            "open the model; planloom-cli run --inputs takes arrays as its inputs", m_where};
    return {ErrorCode::InvalidInput, "this is a zip archive without an exported program", kWayOut, m_where};
}

Result<const ZipEntry *> Pt2Opener::findProgram()
{
    std::vector<const ZipEntry *> programs;
    for (const auto &[name, entry] : m_byName) {
        const std::size_t slash = name.rfind('/');
        const std::string folder = slash == std::string::npos ? std::string() : name.substr(0, slash + 1);
        const std::string file = name.substr(folder.size());
        const bool newer = (folder == "models/" || folder.ends_with("/models/")) && file.ends_with(".json");
        if (!newer && file != kOldProgram)
            continue;
        programs.push_back(entry);
        m_model = newer ? file.substr(0, file.size() - 5) : std::string();
        m_root = newer ? folder.substr(0, folder.size() - 7) : folder;
    }
    if (programs.empty())
        return noProgram();
    if (programs.size() > 1)
        return Error{ErrorCode::NotSupported,
            "the archive holds " + std::to_string(programs.size()) + " programs, where one was expected",
            kSaveAnew, m_where};
    return programs.front();
}

Result<void> Pt2Opener::checkByteOrder() const
{
    const ZipEntry *entry = find(m_root + "byteorder");
    if (entry == nullptr)
        return {};
    TRY(const std::string order, text(*entry));
    if (order != "little")
        return Error{ErrorCode::NotSupported, "the archive's numbers are not little-endian", kSaveAnew,
            m_where + "/" + entry->name};
    return {};
}

const ZipEntry *Pt2Opener::findBeside(const std::string &name) const
{
    if (!m_beside)
        return nullptr;
    for (const ZipEntry &entry : m_beside->entries()) {
        if (entry.name == name)
            return &entry;
    }
    return nullptr;
}

/// Adds where the values of one tensor lie.
Result<void> Pt2Opener::add(Pt2Archive &archive, const std::string &name, Pt2Payload &payload,
    const std::string &path, const std::string &list) const
{
    const ZipEntry *entry = find(path);
    const bool hasElements = std::none_of(payload.meta.sizes.begin(), payload.meta.sizes.end(),
        [](const Pt2Size &size) { return size.value == std::optional<std::int64_t>(0); });
    if (payload.meta.isMeta || (hasElements && entry != nullptr && entry->size == 0)) {
        archive.withoutValues.insert(name);
        return {};
    }
    const bool leftOut = entry == nullptr && find(kWithoutWeights) != nullptr;
    if (leftOut)
        entry = findBeside(path);
    if (entry == nullptr && leftOut) {
        ++archive.missing;
        return {};
    }
    if (entry == nullptr)
        return invalid("the values of '" + name + "' should lie in '" + payload.path
                + "', which the archive does not hold",
            list);
    if (!entry->isStored())
        return Error{ErrorCode::NotSupported,
            "the values of '" + name + "' are compressed, so that they cannot be read where they lie",
            "save it anew with torch.export.save, which stores them", m_where + "/" + entry->name};
    TRY(const std::uint64_t begin, (leftOut ? *m_beside : m_zip).contentAt(*entry));
    archive.storages.emplace(name, Pt2Storage{begin, entry->size, leftOut, std::move(payload.meta)});
    return {};
}

/// Adds the storages that a list of weights or constants names.
Result<void> Pt2Opener::locate(Pt2Archive &archive, const std::string &folder, const char *suffix) const
{
    const ZipEntry *list = find(m_root + folder + m_model + suffix);
    if (list == nullptr)
        return {};
    TRY(const std::string json, text(*list));
    TRY(auto payloads, readPt2Payloads(json, m_where + "/" + list->name));
    for (auto &[name, payload] : payloads) {
        if (payload.isPickled) {
            ++archive.pickled;
            continue;
        }
        TRY_VOID(add(archive, name, payload, m_root + folder + payload.path, list->name));
    }
    return {};
}

Result<Pt2Archive> Pt2Opener::run()
{
    TRY_VOID(checkNames());
    TRY(const ZipEntry *program, findProgram());
    TRY_VOID(checkByteOrder());
    const ZipEntry *other = findBeside(program->name);
    if (other == nullptr || other->checksum != program->checksum || other->size != program->size)
        m_beside.reset(); // another model by now
    Pt2Archive archive;
    archive.isOldLayout = m_model.empty();
    {
        TRY(const std::string json, text(*program));
        TRY(archive.program, readPt2Program(json, m_where + "/" + program->name));
    }
    if (archive.isOldLayout)
        return archive;
    TRY_VOID(locate(archive, "data/weights/", "_weights_config.json"));
    TRY_VOID(locate(archive, "data/constants/", "_constants_config.json"));
    return archive;
}

} // namespace

Result<Pt2Archive> readPt2Archive(std::unique_ptr<const ByteSource> source, const std::string &where,
    std::unique_ptr<const ByteSource> beside)
{
    TRY(auto zip, ZipArchive::open(std::move(source), where, kSaveAnew));
    std::optional<ZipArchive> other;
    if (beside) {
        if (auto opened = ZipArchive::open(std::move(beside), where, kSaveAnew))
            other = *std::move(opened);
    }
    return Pt2Opener(std::move(zip), where, std::move(other)).run();
}

Result<std::string> withoutWeights(
    std::unique_ptr<const ByteSource> source, const std::string &where, std::uint64_t most)
{
    TRY(const auto zip, ZipArchive::open(std::move(source), where, kSaveAnew));
    std::vector<std::vector<std::byte>> contents;
    std::vector<ZipContent> files;
    contents.reserve(zip.entries().size()); // `files` looks into it
    for (const ZipEntry &entry : zip.entries()) {
        const bool isValue =
            entry.name.find("data/weights/") != std::string::npos && !entry.name.ends_with(".json");
        const bool isSample = entry.name.find("data/sample_inputs/") != std::string::npos;
        if (isValue || isSample)
            continue;
        TRY(auto content, zip.content(entry, most));
        most -= content.size();
        contents.push_back(std::move(content));
        files.push_back({entry.name, contents.back()});
    }
    files.push_back({kWithoutWeights, {}});
    TRY(const auto bytes, formatZip(files));
    return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()); // any type may alias char
}

} // namespace planloom
