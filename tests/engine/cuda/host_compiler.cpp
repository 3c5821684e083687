#include "tests/engine/cuda/host_compiler.h"

#include "engine/base/digest.h"

#include "compiler_of_tests.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include <dlfcn.h>
#include <unistd.h>

namespace planloom {

namespace {

namespace fs = std::filesystem;

// Products and sums are not contracted: kernels are not, either, on the processors that all builds are for.
constexpr const char *kFlags = " -std=c++20 -O1 -fPIC -ffp-contract=off -w ";

std::string bytesOf(const fs::path &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Where sources are compiled, with what has been.
class Workshop
{
public:
    Workshop() { fs::create_directories(m_folder); }
    Workshop(const Workshop &) = delete;
    Workshop &operator=(const Workshop &) = delete;
    ~Workshop()
    {
        std::error_code ignored;
        fs::remove_all(m_folder, ignored);
    }

    bool compile(const std::string &source, const std::vector<std::pair<std::string, std::string>> &headers,
        std::string &code, std::string &log)
    {
        const std::lock_guard lock{m_mutex};
        writeHeaders(headers);
        const auto [known, isNew] = m_code.try_emplace(source);
        if (isNew) {
            const fs::path file = m_folder / "chain.cpp";
            std::ofstream(file) << source;
            known->second = run("-shared " + file.string(), m_folder / "chain.so")
                ? bytesOf(m_folder / "chain.so")
                : std::string{};
        }
        code = known->second;
        log = code.empty() ? bytesOf(m_folder / "log") : std::string{};
        return !code.empty();
    }

    void *load(const std::string &code, const char *name)
    {
        const std::lock_guard lock{m_mutex};
        const auto [known, isNew] = m_loaded.try_emplace(sha256(code), nullptr);
        if (isNew) {
            const fs::path file = m_folder / (known->first + ".so");
            std::ofstream(file, std::ios::binary) << code;
            if (void *const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
                known->second = ::dlsym(library, name);
        }
        return known->second;
    }

private:
    bool run(const std::string &what, const fs::path &to) const
    {
        const std::string command = std::string{PLANLOOM_CXX_COMPILER} + kFlags + "-I " + m_folder.string()
            + " " + what + " -o " + to.string() + " 2> " + (m_folder / "log").string();
        return std::system(command.c_str()) == 0;
    }
    void writeHeaders(const std::vector<std::pair<std::string, std::string>> &headers)
    {
        if (std::exchange(m_hasHeaders, true))
            return;
        for (const auto &[name, text] : headers)
            if (name.find('/') != std::string::npos) { // else one of the standard
                fs::create_directories((m_folder / name).parent_path());
                std::ofstream(m_folder / name) << text;
            }
        // What all of them include, read once.
        const fs::path all = m_folder / "engine/cuda/kernels/chain_kernels.h";
        (void)run("-x c++-header " + all.string(), all.string() + ".gch");
    }

    fs::path m_folder = fs::temp_directory_path() / ("planloom-chains-" + std::to_string(::getpid()));
    std::mutex m_mutex{};
    std::map<std::string, std::string> m_code{}; ///< By source; empty where it was refused.
    std::map<std::string, void *> m_loaded{}; ///< By digest of the code.
    bool m_hasHeaders = false;
};

Workshop &workshop()
{
    static Workshop workshop; // for all tests of the process: a source is compiled once
    return workshop;
}

} // namespace

std::string whyNoHostCompiler()
{
    static const bool kWorks =
        std::system((std::string{PLANLOOM_CXX_COMPILER} + " --version > /dev/null 2>&1").c_str()) == 0;
#if defined(__x86_64__)
    return kWorks ? "" : std::string{PLANLOOM_CXX_COMPILER} + " is not there";
#else
    return kWorks ? "processors that contract products and sums round otherwise" : "there is no compiler";
#endif
}

bool compileOnHost(const std::string &source, const std::vector<std::pair<std::string, std::string>> &headers,
    std::string &code, std::string &log)
{
    return workshop().compile(source, headers, code, log);
}

void *loadOnHost(const std::string &code, const char *name)
{
    return workshop().load(code, name);
}

} // namespace planloom
