#include "engine/interop/npz.h"

#include "engine/base/zip.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace planloom {

namespace {

constexpr std::size_t kLeastLimit = std::size_t{256} << 20U;
constexpr const char *kAdvice = "write it with numpy.savez";

} // namespace

Result<NamedArrays> parseNpz(std::span<const std::byte> bytes, std::string_view where)
{
    TRY(const auto zip, ZipArchive::open(sourceOf(bytes), std::string{where}, kAdvice));
    const std::uint64_t limit = std::max<std::uint64_t>(kLeastLimit, bytes.size() * 20);
    std::uint64_t total = 0;
    NamedArrays arrays;
    for (const ZipEntry &member : zip.entries()) {
        constexpr std::string_view kSuffix = ".npy";
        if (!member.name.ends_with(kSuffix))
            continue;
        const std::string place = std::string{where} + "/" + member.name;
        if (member.size > limit - total)
            return Error{ErrorCode::ResourceLimit,
                "the members unpack to more than " + std::to_string(limit >> 20U) + " MiB",
                "split the archive, or store it uncompressed", place};
        total += member.size;
        TRY(const auto content, zip.content(member, limit));
        TRY(auto array, parseNpy(content, place));
        const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
        if (!arrays.emplace(name, std::move(array)).second)
            return Error{ErrorCode::InvalidInput, "two members have this name", kAdvice, place};
    }
    return arrays;
}

Result<NamedArrays> readNpz(const std::string &path)
{
    TRY(const auto bytes, readBytes(path));
    return parseNpz(bytes, path);
}

Result<std::vector<std::byte>> formatNpz(const NamedArrays &arrays)
{
    std::vector<std::vector<std::byte>> contents;
    std::vector<ZipContent> files;
    contents.reserve(arrays.size());
    for (const auto &[name, array] : arrays) {
        contents.push_back(formatNpy(array));
        files.push_back({name + ".npy", contents.back()});
    }
    auto bytes = formatZip(files);
    if (!bytes)
        bytes.error().advice = "write a folder";
    return bytes;
}

Result<void> writeNpz(const std::string &path, const NamedArrays &arrays)
{
    TRY(const auto bytes, formatNpz(arrays));
    return writeBytes(path, bytes);
}

Result<NamedArrays> readInputs(const std::string &path)
{
    std::error_code failure;
    NamedArrays inputs;
    if (std::filesystem::is_directory(path, failure)) {
        std::filesystem::recursive_directory_iterator entry{path, failure};
        for (const std::filesystem::recursive_directory_iterator end; !failure && entry != end;
             entry.increment(failure)) {
            if (entry->path().extension() != ".npy" || !entry->is_regular_file(failure))
                continue;
            TRY(auto array, readNpy(entry->path().string()));
            std::string name = entry->path().lexically_relative(path).generic_string();
            name.resize(name.size() - 4);
            inputs.emplace(std::move(name), std::move(array));
        }
        if (failure)
            return Error{ErrorCode::Io, "cannot list " + path + ": " + failure.message(), {}, path};
    } else {
        TRY(auto members, readNpz(path));
        constexpr std::string_view kPrefix = "in.";
        const bool prefixed = std::any_of(members.begin(), members.end(),
            [&](const auto &member) { return member.first.starts_with(kPrefix); });
        for (auto &[name, array] : members) {
            if (!prefixed)
                inputs.emplace(name, std::move(array));
            else if (name.starts_with(kPrefix))
                inputs.emplace(name.substr(kPrefix.size()), std::move(array));
        }
    }
    if (inputs.empty())
        return Error{ErrorCode::InvalidInput, "there are no arrays in " + path,
            "give an .npz with in.<name> members, or a folder of <name>.npy", path};
    return inputs;
}

} // namespace planloom
