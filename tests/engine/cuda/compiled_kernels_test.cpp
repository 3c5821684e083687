// Kernels that are compiled while a plan runs are kept in a folder: what lies there is found again, and
// whatever else lies there is compiled anew.

#include "engine/cuda/kernels/compiled_kernels.h"

#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/host_compiler.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace planloom {
namespace {

namespace fs = std::filesystem;

/// A folder that is there as long as the test.
class KernelFolder : public testing::Test
{
protected:
    void SetUp() override
    {
        if (const std::string why = whyNoHostCompiler(); !why.empty())
            GTEST_SKIP() << why;
        fs::remove_all(m_folder);
        m_cuda.hasCompiler = true;
    }
    void TearDown() override { fs::remove_all(m_folder); }

    /// x -> relu(x) + 1, as one kernel.
    ElementChain::Program program()
    {
        const auto at = [&](std::size_t place) {
            return Elements{m_values.data() + place, DataType::Float32};
        };
        UnaryKernel relu;
        relu.x = at(0);
        relu.made = at(4);
        relu.function = UnaryFunction::Relu;
        BinaryKernel add;
        add.a = at(4);
        add.b = at(8);
        add.made = at(4);
        add.nest.loops = 1;
        add.nest.extents[0] = 4;
        add.nest.strides[0][0] = 1;
        ElementChain chain;
        EXPECT_TRUE(chain.take(relu, 4));
        EXPECT_TRUE(chain.take(add, 4));
        return chain.program();
    }

    /// Asks for the kernel as a run of its own does. @return how often it was compiled
    int runOnce()
    {
        CompiledKernels kernels(m_cuda);
        kernels.open(0, m_folder);
        EXPECT_EQ(kernels.whyNot(), "");
        const ElementChain::Program wanted = program();
        const auto warn = [this](const std::string &text) { m_warnings += text + "\n"; };
        const CudaKernel kernel = kernels.kernelOf(wanted, warn);
        EXPECT_EQ(kernels.kernelOf(wanted, warn), kernel);
        EXPECT_EQ(kernels.compiled() + kernels.found(), kernel == nullptr ? 0 : 1);
        if (kernel == nullptr)
            return 0;
        m_values = {-1, 2, -3, 4, 0, 0, 0, 0, 1};
        reinterpret_cast<HostKernel>(kernel)(wanted.words.data(), 4);
        EXPECT_EQ((std::array{m_values[4], m_values[5], m_values[6], m_values[7]}),
            (std::array{1.0f, 3.0f, 1.0f, 5.0f}));
        return kernels.compiled();
    }

    std::vector<fs::path> files() const
    {
        std::vector<fs::path> found;
        if (fs::exists(m_folder))
            for (const auto &entry : fs::directory_iterator(m_folder))
                found.push_back(entry.path());
        return found;
    }

    fs::path m_folder = fs::temp_directory_path() / "planloom-compiled-kernels-test" / "kernels";
    FakeCuda m_cuda{};
    std::array<float, 12> m_values{};
    std::string m_warnings{};
};

TEST_F(KernelFolder, HasWhatWasCompiledBefore)
{
    EXPECT_EQ(runOnce(), 1);
    ASSERT_EQ(files().size(), 1U);
    EXPECT_EQ(runOnce(), 0);
    EXPECT_EQ(runOnce(), 0);
    EXPECT_EQ(m_cuda.compiled, 1);
    m_cuda.compilerNumber = "13.1"; // what another compiler makes is another kernel
    EXPECT_EQ(runOnce(), 1);
    EXPECT_EQ(files().size(), 2U);
    EXPECT_EQ(m_cuda.live(), 0U);
    EXPECT_EQ(m_warnings, "");
}

TEST_F(KernelFolder, WithAnythingElseInItIsWrittenAnew)
{
    ASSERT_EQ(runOnce(), 1);
    ASSERT_EQ(files().size(), 1U);
    const fs::path file = files()[0];
    std::string good;
    {
        std::ifstream in(file, std::ios::binary);
        good.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto holds = [&](const std::string &bytes) {
        std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
        EXPECT_EQ(runOnce(), 1) << bytes.size();
        EXPECT_EQ(runOnce(), 0);
    };
    for (const std::size_t kept : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{18},
             std::size_t{82}, std::size_t{83}, std::size_t{84}, good.size() / 2, good.size() - 1})
        holds(good.substr(0, kept));
    for (const std::size_t flipped :
        {std::size_t{0}, std::size_t{30}, std::size_t{82}, std::size_t{83}, good.size() - 1}) {
        std::string wrong = good;
        wrong[flipped] = static_cast<char>(wrong[flipped] ^ 1);
        holds(wrong);
    }
    holds(good + "x");
    holds("no kernel at all");

    // As it was written, but for another kernel, or where others can write it.
    m_cuda.compilerNumber = "13.1";
    ASSERT_EQ(runOnce(), 1);
    for (const fs::path &each : files())
        if (each != file)
            fs::copy_file(file, each, fs::copy_options::overwrite_existing);
    EXPECT_EQ(runOnce(), 1);
    m_cuda.compilerNumber = "13.0";
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(runOnce(), 1);
    EXPECT_EQ(runOnce(), 0); // it is only ours again
    fs::rename(file, file.string() + ".elsewhere");
    fs::create_symlink(file.string() + ".elsewhere", file);
    EXPECT_EQ(runOnce(), 1);
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_EQ(runOnce(), 1);
    EXPECT_EQ(runOnce(), 1); // a folder stays
    EXPECT_EQ(m_warnings, "");
    EXPECT_EQ(m_cuda.live(), 0U);
}

TEST_F(KernelFolder, ThatCannotBeWrittenIsDoneWithout)
{
    m_folder = "/proc/planloom";
    EXPECT_EQ(runOnce(), 1);
    EXPECT_EQ(runOnce(), 1);
    m_folder.clear();
    EXPECT_EQ(runOnce(), 1);
    EXPECT_EQ(m_warnings, "");
    m_folder = fs::temp_directory_path() / "planloom-compiled-kernels-test";
}

TEST_F(KernelFolder, StaysEmptyWhereNothingCanBeCompiledOrLoaded)
{
    m_cuda.compileFails = 6;
    EXPECT_EQ(runOnce(), 0);
    EXPECT_EQ(m_warnings,
        "some element-wise operators run one after another and not as one kernel: nvrtcCompileProgram failed "
        "with 6: "
        "line 1: error\n");
    m_cuda.compileFails = 0;
    m_cuda.loadFails = 209;
    CompiledKernels kernels(m_cuda);
    kernels.open(0, m_folder);
    m_warnings.clear();
    const auto warn = [this](const std::string &text) { m_warnings += text + "\n"; };
    EXPECT_EQ(kernels.kernelOf(program(), warn), nullptr);
    EXPECT_EQ(kernels.kernelOf(program(), warn), nullptr);
    EXPECT_EQ(kernels.compiled(), 1);
    EXPECT_EQ(m_warnings,
        "some element-wise operators run one after another and not as one kernel: cudaLibraryLoadData failed "
        "with 209: "
        "error 209 of the fake\n");
    EXPECT_TRUE(files().empty());

    FakeCuda without;
    CompiledKernels none(without);
    EXPECT_EQ(none.whyNot(), "no GPU was opened");
    none.open(0, m_folder);
    EXPECT_EQ(none.whyNot(), "NVRTC was not found");
    EXPECT_EQ(none.kernelOf(program(), {}), nullptr);
}

} // namespace
} // namespace planloom
