#include "engine/interop/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace planloom {

namespace {

using StoredJson = nlohmann::json;
constexpr std::uint64_t kPrefixBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000; // as in the format's own library
constexpr int kDeepestHeader = 4; // file, tensor, its shape, an extent
constexpr std::size_t kMostDimensions = 64;

struct StoredTypeName {
    DataType type;
    std::string_view name;
};

constexpr std::array<StoredTypeName, 12> kStoredTypeNames{
    {{DataType::Float32, "F32"}, {DataType::Float64, "F64"}, {DataType::Float16, "F16"},
        {DataType::BFloat16, "BF16"}, {DataType::Float8E4M3, "F8_E4M3"}, {DataType::Float8E5M2, "F8_E5M2"},
        {DataType::Int64, "I64"}, {DataType::Int32, "I32"}, {DataType::Int16, "I16"}, {DataType::Int8, "I8"},
        {DataType::UInt8, "U8"}, {DataType::Bool, "BOOL"}}};

std::optional<DataType> storedTypeNamed(std::string_view name)
{
    const auto *const found = std::find_if(kStoredTypeNames.begin(), kStoredTypeNames.end(),
        [&](const StoredTypeName &known) { return known.name == name; });
    return found == kStoredTypeNames.end() ? std::nullopt : std::optional{found->type};
}

std::optional<std::string_view> storedNameOf(DataType type)
{
    const auto *const found = std::find_if(kStoredTypeNames.begin(), kStoredTypeNames.end(),
        [&](const StoredTypeName &known) { return known.type == type; });
    return found == kStoredTypeNames.end() ? std::nullopt : std::optional{found->name};
}

Error damagedFile(const std::filesystem::path &path, const std::string &tensor, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "copy the file again, or write it anew",
        path.string() + (tensor.empty() ? "" : ": " + tensor)};
}

Error cannotWrite(const std::filesystem::path &path, int why)
{
    return {ErrorCode::Io, std::string{"cannot write: "} + std::strerror(why),
        why == ENOSPC ? "make room, or choose another folder" : "check that the folder can be written",
        path.string()};
}

/// The header as JSON; nothing else has been looked at.
Result<StoredJson> parseHeader(const std::string &text, const std::filesystem::path &path)
{
    bool tooDeep = false;
    const auto shallow = [&tooDeep](int depth, StoredJson::parse_event_t, const StoredJson &) {
        tooDeep = tooDeep || depth > kDeepestHeader;
        return !tooDeep;
    };
    StoredJson header = StoredJson::parse(text, shallow, false);
    if (tooDeep)
        return damagedFile(path, {}, "the header is nested too deeply");
    if (!header.is_object())
        return damagedFile(path, {}, "the header is no JSON object");
    return header;
}

/// One tensor of the header. @param room  bytes behind the header, which begin at `begin`
Result<SafetensorsEntry> readEntry(const StoredJson &json, const std::string &name,
    const std::filesystem::path &path, std::uint64_t begin, std::uint64_t room)
{
    const auto damaged = [&](const std::string &what) { return damagedFile(path, name, what); };
    const auto field = [&](const char *key) { return json.is_object() ? json.find(key) : json.end(); };
    const auto dtype = field("dtype");
    const auto shape = field("shape");
    const auto offsets = field("data_offsets");
    const auto isCount = [](const StoredJson &value) { return value.is_number_unsigned(); };
    if (!json.is_object() || dtype == json.end() || shape == json.end() || offsets == json.end()
        || !dtype->is_string() || !shape->is_array() || !offsets->is_array() || offsets->size() != 2
        || !std::all_of(shape->begin(), shape->end(), isCount)
        || !std::all_of(offsets->begin(), offsets->end(), isCount))
        return damaged("expected dtype, shape and data_offsets of a tensor");
    const auto type = storedTypeNamed(dtype->get_ref<const std::string &>());
    if (!type)
        return Error{ErrorCode::NotSupported,
            "elements of type \"" + dtype->get<std::string>() + "\" cannot be read",
            "convert the tensor to a float, integer or bool type of at most 8 bytes",
            path.string() + ": " + name};
    SafetensorsEntry entry;
    entry.type.dataType = *type;
    if (shape->size() > kMostDimensions)
        return damaged("a tensor of " + std::to_string(shape->size()) + " dimensions");
    std::uint64_t bytes = static_cast<std::uint64_t>(sizeOf(*type));
    bool isEmpty = false;
    for (const StoredJson &each : *shape) {
        const auto extent = each.get<std::uint64_t>();
        isEmpty = isEmpty || extent == 0;
        if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
            || (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)))
            return damaged("the shape has more elements than can be counted");
        entry.type.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const auto first = (*offsets)[0].get<std::uint64_t>();
    const auto last = (*offsets)[1].get<std::uint64_t>();
    if (first > last || last > room)
        return damaged("bytes " + std::to_string(first) + " to " + std::to_string(last)
            + " are not in the file, which has " + std::to_string(room));
    entry.bytes = isEmpty ? 0 : bytes;
    entry.offset = begin + first;
    if (last - first != entry.bytes)
        return damaged(std::string{nameOf(*type)} + " " + toString(entry.type.shape) + " takes "
            + std::to_string(entry.bytes) + " bytes, the file has " + std::to_string(last - first));
    return entry;
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path &path)
{
    TRY(auto source, openByteSource(path));
    SafetensorsFile file;
    file.m_source = std::move(source);
    const std::uint64_t size = file.m_source->size();
    std::array<std::byte, kPrefixBytes> prefix{};
    if (size < kPrefixBytes)
        return damagedFile(path, {}, "expected a safetensors file, found " + std::to_string(size) + " bytes");
    TRY_VOID(file.m_source->read(0, prefix));
    std::uint64_t length = 0;
    for (std::size_t i = kPrefixBytes; i-- > 0;)
        length = length << 8U | std::to_integer<std::uint64_t>(prefix[i]);
    if (length > kMostHeaderBytes || length > size - kPrefixBytes)
        return damagedFile(path, {},
            "expected a safetensors file: its first eight bytes ask for a header of " + std::to_string(length)
                + " bytes, the file has " + std::to_string(size - kPrefixBytes));
    std::string text(static_cast<std::size_t>(length), ' ');
    TRY_VOID(file.m_source->read(kPrefixBytes, std::as_writable_bytes(std::span{text})));
    TRY(const auto header, parseHeader(text, path));

    const std::uint64_t begin = kPrefixBytes + length;
    std::vector<std::pair<std::uint64_t, const std::string *>> order;
    for (const auto &[name, json] : header.items()) {
        if (name == "__metadata__") {
            for (const auto &[key, value] : json.items())
                if (value.is_string())
                    file.m_metadata.emplace(key, value.get<std::string>());
            continue;
        }
        TRY(auto entry, readEntry(json, name, path, begin, size - begin));
        const auto at = file.m_tensors.emplace(name, std::move(entry)).first;
        order.emplace_back(at->second.offset, &at->first);
    }
    std::sort(order.begin(), order.end(), [&](const auto &a, const auto &b) {
        return std::tie(a.first, file.m_tensors.at(*a.second).bytes)
            < std::tie(b.first, file.m_tensors.at(*b.second).bytes); // empty ones first
    });
    std::uint64_t end = begin;
    for (const auto &[offset, name] : order) {
        if (offset != end)
            return damagedFile(path, *name,
                offset < end ? "its bytes are another tensor's, too" : "bytes before it belong to no tensor");
        end = offset + file.m_tensors.at(*name).bytes;
    }
    if (end != size)
        return damagedFile(
            path, {}, std::to_string(size - end) + " bytes at the end of the file belong to no tensor");
    return file;
}

Result<void> SafetensorsFile::read(
    const SafetensorsEntry &entry, std::uint64_t first, std::span<std::byte> bytes) const
{
    if (first > entry.bytes || bytes.size() > entry.bytes - first)
        return Error{ErrorCode::InvalidInput, "a piece beyond the end of its tensor", {}, {}};
    return m_source->read(entry.offset + first, bytes);
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, int descriptor, bool made)
    : m_path(std::move(path))
    , m_fresh(m_path.string() + ".part")
    , m_descriptor(descriptor)
    , m_made(made)
{
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter &&other) noexcept
    : m_path(std::move(other.m_path))
    , m_fresh(std::move(other.m_fresh))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
    , m_made(other.m_made)
    , m_tensors(std::move(other.m_tensors))
{
}

SafetensorsWriter::~SafetensorsWriter()
{
    if (m_descriptor < 0)
        return;
    ::close(m_descriptor);
    std::error_code failure;
    if (m_made)
        std::filesystem::remove(m_fresh, failure);
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path &path,
    const std::map<std::string, TensorType> &tensors, const SafetensorsMetadata &metadata)
{
    // As the format's own library does: wide types first, so that each tensor is aligned to its elements.
    std::vector<const std::pair<const std::string, TensorType> *> order;
    for (const auto &tensor : tensors)
        order.push_back(&tensor);
    std::stable_sort(order.begin(), order.end(),
        [](const auto *a, const auto *b) { return sizeOf(a->second.dataType) > sizeOf(b->second.dataType); });
    StoredJson header = StoredJson::object();
    if (!metadata.empty())
        header["__metadata__"] = metadata;
    std::map<std::string, SafetensorsEntry> entries;
    std::uint64_t end = 0;
    for (const auto *tensor : order) {
        const auto &[name, type] = *tensor;
        const auto stored = storedNameOf(type.dataType);
        if (!stored)
            return Error{ErrorCode::NotSupported,
                name + " is " + nameOf(type.dataType) + ", which a safetensors file cannot hold", {},
                path.string()};
        const auto bytes = static_cast<std::uint64_t>(elementCount(type.shape) * sizeOf(type.dataType));
        entries[name] = {type, end, bytes};
        header[name] = {{"dtype", *stored}, {"shape", type.shape}, {"data_offsets", {end, end + bytes}}};
        end += bytes;
    }
    std::string text = header.dump(-1, ' ', false, StoredJson::error_handler_t::replace);
    text.resize((text.size() + kPrefixBytes - 1) / kPrefixBytes * kPrefixBytes, ' ');
    const std::uint64_t begin = kPrefixBytes + text.size();
    std::string prefix;
    for (std::uint64_t i = 0; i < kPrefixBytes; ++i)
        prefix += static_cast<char>(text.size() >> (8 * i) & 0xFFU);
    for (auto &[name, entry] : entries)
        entry.offset += begin;

    std::error_code failure;
    if (path.has_parent_path())
        std::filesystem::create_directories(path.parent_path(), failure);
    const std::string fresh = path.string() + ".part";
    const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return cannotWrite(path, errno);
    SafetensorsWriter writer{path, descriptor, true};
    writer.m_tensors = std::move(entries);
    if (const int refused = ::posix_fallocate(descriptor, 0, static_cast<off_t>(begin + end)); refused != 0)
        return cannotWrite(path, refused);
    const std::string head = prefix + text;
    if (::pwrite(descriptor, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()))
        return cannotWrite(path, errno);
    return writer;
}

Result<SafetensorsWriter> SafetensorsWriter::join(const std::filesystem::path &path)
{
    const std::string fresh = path.string() + ".part";
    TRY(const auto file, SafetensorsFile::open(fresh));
    const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cannotWrite(path, errno);
    SafetensorsWriter writer{path, descriptor, false};
    writer.m_tensors = file.tensors();
    return writer;
}

Result<void> SafetensorsWriter::write(
    const std::string &name, std::uint64_t first, std::span<const std::byte> bytes)
{
    const auto found = m_tensors.find(name);
    if (found == m_tensors.end() || first > found->second.bytes || bytes.size() > found->second.bytes - first)
        return Error{
            ErrorCode::InvalidInput, "the file has no room for this piece of " + name, {}, m_path.string()};
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t written = ::pwrite(m_descriptor, bytes.data() + done, bytes.size() - done,
            static_cast<off_t>(found->second.offset + first + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return cannotWrite(m_path, written == 0 ? ENOSPC : errno);
        done += static_cast<std::size_t>(written);
    }
    return {};
}

Result<void> SafetensorsWriter::commit()
{
    assert(m_made);
    if (::fsync(m_descriptor) != 0)
        return cannotWrite(m_path, errno);
    std::error_code failure;
    std::filesystem::rename(m_fresh, m_path, failure);
    if (failure)
        return cannotWrite(m_path, failure.value());
    ::close(std::exchange(m_descriptor, -1));
    // The new name is in the folder, which is on the disk only once it is asked for, too.
    const std::filesystem::path folder = m_path.has_parent_path() ? m_path.parent_path() : ".";
    if (const int of = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); of >= 0) {
        (void)::fsync(of); // some file systems refuse, and the file is there all the same
        ::close(of);
    }
    return {};
}

Result<void> writeSafetensors(
    const std::filesystem::path &path, const std::map<std::string, TensorData> &tensors)
{
    std::map<std::string, TensorType> types;
    for (const auto &[name, data] : tensors)
        types[name] = data.type;
    TRY(auto writer, SafetensorsWriter::create(path, types, {{"format", "pt"}}));
    for (const auto &[name, data] : tensors)
        TRY_VOID(writer.write(name, 0, data.bytes));
    return writer.commit();
}

} // namespace planloom
