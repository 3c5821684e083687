#include "engine/cuda/kernels/compiled_kernels.h"

#include "engine/base/digest.h"
#include "engine/base/files.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace planloom {

namespace {

namespace fs = std::filesystem;

constexpr const char *kFormat = "planloom-kernel-1\n";
constexpr const char *kEnding = ".cubin";
constexpr std::uintmax_t kMostBytes = 16u << 20;
constexpr std::size_t kMostFiles = 1000;

/// What stands in front of the code: the file's own name is part of it, so that one that was renamed is none.
std::string headOf(const fs::path &file, const std::string &code)
{
    return kFormat + sha256(file.filename().string() + "\n" + code) + "\n";
}

/// What others can write is not loaded onto the GPU.
bool isOnlyOurs(const fs::path &file)
{
    struct stat found {
    };
    return ::lstat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == ::geteuid()
        && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Of too many files the oldest go.
void makeRoom(const fs::path &folder)
{
    std::error_code failure;
    std::vector<std::pair<fs::file_time_type, fs::path>> files;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure))
        if (entry->path().extension() == kEnding) {
            std::error_code ignored;
            files.emplace_back(fs::last_write_time(entry->path(), ignored), entry->path());
        }
    if (files.size() < kMostFiles)
        return;
    std::sort(files.begin(), files.end());
    files.resize(files.size() - kMostFiles * 9 / 10);
    for (const auto &[time, file] : files)
        fs::remove(file, failure);
}

} // namespace

CompiledKernels::~CompiledKernels()
{
    for (const auto &[body, kernel] : m_kernels)
        if (kernel != nullptr)
            (void)m_cuda.unloadKernel(kernel);
}

void CompiledKernels::open(std::int32_t gpu, const fs::path &folder)
{
    if (m_why.empty())
        return;
    m_why = m_cuda.whyNoCompiler();
    CudaDeviceInfo info;
    if (m_why.empty() && m_cuda.deviceInfo(gpu, info) != kCudaSuccess)
        m_why = "the GPU's architecture is not known";
    m_architecture = info.major * 10 + info.minor;
    m_folder = folder;
}

std::optional<std::string> CompiledKernels::inFolder(const fs::path &file) const
{
    if (m_folder.empty() || !isOnlyOurs(file))
        return std::nullopt;
    auto bytes = readFile(file, {.mostBytes = kMostBytes});
    if (!bytes)
        return std::nullopt;
    const std::size_t head = headOf(file, {}).size();
    if (bytes->size() <= head)
        return std::nullopt;
    std::string code = bytes->substr(head);
    if (bytes->compare(0, head, headOf(file, code)) != 0)
        return std::nullopt;
    return code;
}

void CompiledKernels::keep(const fs::path &file, const std::string &code) const
{
    if (m_folder.empty())
        return;
    std::error_code failure;
    fs::create_directories(m_folder, failure);
    if (!failure)
        makeRoom(m_folder);
    if (!failure && writeFile(file, headOf(file, code) + code)) // else the next run compiles it again
        fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, failure);
}

CudaKernel CompiledKernels::make(const std::string &source, std::string &why)
{
    std::string known = std::to_string(m_architecture) + "\n" + m_cuda.compilerVersion() + "\n" + source;
    for (const auto &[name, text] : chainHeaders())
        known += "\n" + name + "\n" + text;
    const fs::path file = m_folder / (sha256(known) + kEnding);
    CudaKernel kernel = nullptr;
    if (const auto code = inFolder(file);
        code && m_cuda.loadKernel(*code, kChainName, &kernel) == kCudaSuccess) {
        ++m_found;
        return kernel;
    }
    std::string code;
    std::string log;
    if (const CudaStatus status = m_cuda.compile(source, chainHeaders(), m_architecture, code, log);
        status != kCudaSuccess) {
        why = "nvrtcCompileProgram failed with " + std::to_string(status) + ": "
            + log.substr(0, log.find('\n'));
        return nullptr;
    }
    ++m_compiled;
    if (const CudaStatus status = m_cuda.loadKernel(code, kChainName, &kernel); status != kCudaSuccess) {
        why = "cudaLibraryLoadData failed with " + std::to_string(status) + ": " + m_cuda.errorText(status);
        return nullptr;
    }
    keep(file, code);
    return kernel;
}

CudaKernel CompiledKernels::kernelOf(
    const ElementChain::Program &program, const std::function<void(const std::string &)> &warning)
{
    if (!m_why.empty())
        return nullptr;
    const auto [found, isNew] = m_kernels.try_emplace(program.body, nullptr);
    if (!isNew)
        return found->second;
    std::string why;
    found->second = make(chainSource(program), why);
    if (found->second == nullptr && !std::exchange(m_saidWhy, true) && warning)
        warning("some element-wise operators run one after another and not as one kernel: " + why);
    return found->second;
}

} // namespace planloom
