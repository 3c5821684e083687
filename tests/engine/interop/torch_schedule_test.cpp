#include "engine/interop/torch_schedule.h"

#include "engine/schedule/schedule_templates.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// What PyTorch 2.15 writes of ScheduleDualPipeV with 2 ranks and 4 micro-batches, compute-only and with
/// communication.
constexpr const char *kDualPipeV =
    "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,"
    "3B3,0I2,0W2,0I3,0W3\r\n"
    "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,"
    "2I3,1I3,2W3,1W3\r\n";
constexpr const char *kDualPipeVWithCommunication =
    "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,"
    "3W0,3F1,3RECV_F2,0RECV_B0,(0F3;3B1)OVERLAP_F_B,0SEND_F3,3SEND_B1,(3F2;0B0)OVERLAP_F_B,"
    "0WAIT_SEND_F0,3RECV_F3,0RECV_B1,3B2,3SEND_B2,(3F3;0B1)OVERLAP_F_B,0WAIT_SEND_F1,0RECV_B2,3B3,"
    "3SEND_B3,3REDUCE_GRAD,0RECV_B3,3WAIT_REDUCE_GRAD,3RESHARD,0I2,0WAIT_SEND_F2,0W2,0I3,"
    "0WAIT_SEND_F3,0W3,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD,3WAIT_SEND_B0,3WAIT_SEND_B1,"
    "3WAIT_SEND_B2,3WAIT_SEND_B3\r\n"
    "1UNSHARD,2UNSHARD,1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,1F2,"
    "2B0,2WAIT_SEND_F0,(2F2;1B0)OVERLAP_F_B,2SEND_F2,1SEND_B0,1RECV_F3,2RECV_B1,"
    "(1F3;2B1)OVERLAP_F_B,2WAIT_SEND_F1,(2F3;1B1)OVERLAP_F_B,2SEND_F3,1SEND_B1,2RECV_B2,2B2,"
    "2WAIT_SEND_F2,1B2,1SEND_B2,2RECV_B3,2I3,2WAIT_SEND_F3,1I3,1SEND_B3,2W3,2REDUCE_GRAD,"
    "2WAIT_REDUCE_GRAD,2RESHARD,1W3,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0,"
    "1WAIT_SEND_B1,1WAIT_SEND_B2,1WAIT_SEND_B3\r\n";

/// Stages dealt out in turn, or in one wave.
ScheduleSetting settingOf(std::int32_t ranks, std::int32_t stages, std::int32_t microBatches, bool wave)
{
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches};
    for (std::int32_t s = 0; s < stages; ++s)
        setting.rankOf.push_back(wave && s >= ranks ? 2 * ranks - 1 - s : s % ranks);
    return setting;
}

TEST(TorchSchedule, FilesOfPyTorchAreWrittenBackUnchanged)
{
    for (const std::string text : {kDualPipeV, kDualPipeVWithCommunication, "0F0,,0B0\r\n,1F0,1B0\r\n",
             "\"\"\r\n1F0\r\n", "0F0,0I0,0W0\n"}) {
        const auto schedule = readTorchSchedule(text);
        ASSERT_TRUE(schedule) << describe(schedule.error());
        EXPECT_EQ(writeTorchSchedule(*schedule), text);
    }
}

/// What is communicated is what PyTorch adds.
TEST(TorchSchedule, CommunicationIsPyTorchs)
{
    const auto read = readTorchSchedule(kDualPipeV);
    ASSERT_TRUE(read) << describe(read.error());
    const auto whole = withCommunication(*read);
    ASSERT_TRUE(whole) << describe(whole.error());
    EXPECT_EQ(writeTorchSchedule(*whole), kDualPipeVWithCommunication);
    EXPECT_EQ(withCommunication(*whole).error().message,
        "this schedule has communication already: 0UNSHARD on rank 0");
}

/// The template is PyTorch's, but for gradients of inputs with those of weights right behind them.
TEST(TorchSchedule, DualPipeVIsPyTorchs)
{
    const auto made = makeSchedule(ScheduleKind::DualPipeV, settingOf(2, 4, 4, true));
    ASSERT_TRUE(made) << describe(made.error());
    const auto read = readTorchSchedule(kDualPipeV);
    ASSERT_TRUE(read) << describe(read.error());
    const auto theirs = computedSchedule(*read);
    ASSERT_TRUE(theirs) << describe(theirs.error());
    EXPECT_EQ(theirs->setting.rankOf, (std::vector<std::int32_t>{0, 1, 1, 0}));
    const auto merged = torchSchedule(theirs->schedule);
    const auto ours = torchSchedule(*made);
    ASSERT_TRUE(merged && ours);
    EXPECT_EQ(writeTorchSchedule(*ours), writeTorchSchedule(*merged));
}

/// Whatever is communicated is left out when it is read, so that nothing but the order remains.
TEST(TorchSchedule, TemplatesComeBackFromTheirFiles)
{
    for (const ScheduleKind kind : kAllSchedules) {
        const bool wave = kind == ScheduleKind::ZeroBubbleV || kind == ScheduleKind::VHalf
            || kind == ScheduleKind::VMin || kind == ScheduleKind::DualPipeV || kind == ScheduleKind::Hanayo;
        const bool loops = wave || kind == ScheduleKind::Interleaved || kind == ScheduleKind::BreadthFirst;
        const std::int32_t ranks = kind == ScheduleKind::Sequential ? 1 : 4;
        const auto made = makeSchedule(kind, settingOf(ranks, loops ? 2 * ranks : ranks, 8, wave));
        if (!made)
            continue; // in lanes
        SCOPED_TRACE(nameOf(kind));
        const auto written = torchSchedule(*made);
        ASSERT_TRUE(written) << describe(written.error());
        const auto whole = withCommunication(*written);
        ASSERT_TRUE(whole) << describe(whole.error());
        const auto runs = checkCommunication(*whole);
        EXPECT_TRUE(runs) << describe(runs.error());
        EXPECT_FALSE(communicates(*written));
        EXPECT_EQ(computationOf(*whole), *written);
        for (const TorchSchedule &each : {*written, *whole}) {
            const auto read = readTorchSchedule(writeTorchSchedule(each));
            ASSERT_TRUE(read) << describe(read.error());
            EXPECT_EQ(*read, each);
            const auto computed = computedSchedule(*read);
            ASSERT_TRUE(computed) << describe(computed.error());
            EXPECT_EQ(computed->setting.microBatches, 8);
            const auto again = torchSchedule(computed->schedule);
            ASSERT_TRUE(again) << describe(again.error());
            EXPECT_EQ(*again, *written);
        }
    }
}

/// Nothing can be left out of what is communicated but what nobody waits for.
TEST(TorchSchedule, EveryMissingTransferIsFound)
{
    const auto whole = readTorchSchedule(kDualPipeVWithCommunication);
    ASSERT_TRUE(whole) << describe(whole.error());
    ASSERT_TRUE(checkCommunication(*whole));
    using Kind = TorchActionKind;
    int left = 0;
    for (std::size_t r = 0; r < whole->ranks.size(); ++r)
        for (std::size_t i = 0; i < whole->ranks[r].size(); ++i) {
            const TorchAction &action = *whole->ranks[r][i];
            if (action.kind != Kind::Unshard && action.kind != Kind::SendForward
                && action.kind != Kind::SendBackward && action.kind != Kind::ReceiveForward
                && action.kind != Kind::ReceiveBackward)
                continue;
            TorchSchedule without = *whole;
            without.ranks[r].erase(without.ranks[r].begin() + static_cast<std::ptrdiff_t>(i));
            EXPECT_FALSE(checkCommunication(without)) << "without " << toString(action);
            ++left;
        }
    EXPECT_GT(left, 20);
}

TEST(TorchSchedule, SaysWhyCommunicationStops)
{
    const auto errorOf = [](const char *text) {
        const auto read = readTorchSchedule(text);
        const auto check = read ? checkCommunication(*read) : Result<void>(read.error());
        return check ? std::string{} : check.error().where + " " + check.error().message;
    };
    EXPECT_EQ(errorOf("0F0,0B0\n1F0,1B0\n"), ""); // nothing is communicated
    EXPECT_EQ(errorOf("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "");
    // PyTorch's GPipe says when gradients are reduced, and nothing of what is sent.
    EXPECT_EQ(errorOf("0F0,0B0,0REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n"), "");
    EXPECT_EQ(errorOf("0F0,0B0,0REDUCE_GRAD\n1B0,1F0,1REDUCE_GRAD\n"),
        "line:1:2 0B0 never runs: it waits for 1I0, which does not come before it");
    // Both wait for the other's send.
    EXPECT_EQ(errorOf("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
        "line:1:2 0RECV_B0 never runs: it waits for 1SEND_B0, which does not come before it");
    EXPECT_EQ(errorOf("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n"),
        "line:1:3 0RECV_B0 never runs: it waits for 1SEND_B0, which does not come before it");
    EXPECT_EQ(errorOf("0SEND_F0,0F0\n1RECV_F0,1F0\n"),
        "line:1:1 0SEND_F0 never runs: it waits for 0F0, which does not come before it");
    EXPECT_EQ(errorOf("0F0,0SEND_F0\n1F0\n"), "line:1:2 0SEND_F0 has no 1RECV_F0 on rank 1");
    EXPECT_EQ(errorOf("0F0,0SEND_B0\n"), "line:1:2 0SEND_B0 has no stage at its other end");
    EXPECT_EQ(
        errorOf("0F0,1RECV_F0\n1F0\n"), "line:1:2 1RECV_F0 stands on rank 0, which does not compute stage 1");
    EXPECT_EQ(errorOf("0UNSHARD,0F0,0RESHARD,0B0\n"),
        "line:1:4 0B0 runs while the weights of stage 0 are not gathered");
    EXPECT_EQ(errorOf("0UNSHARD,0UNSHARD,0F0\n"),
        "line:1:2 0UNSHARD: the weights of the stage are gathered already");
    EXPECT_EQ(
        errorOf("0F0,0REDUCE_GRAD,0B0\n"), "line:1:2 0REDUCE_GRAD comes before the last block of its stage");
    EXPECT_EQ(errorOf("0RESHARD,0F0\n"), "line:1:1 0RESHARD: the weights of the stage are not gathered");
    EXPECT_EQ(errorOf("0F0,0B0,0WAIT_REDUCE_GRAD\n"),
        "line:1:3 0WAIT_REDUCE_GRAD never runs: it waits for 0REDUCE_GRAD, which does not come before it");
}

/// Every transfer and gather takes a step beside the computation:
///
///     step       0   1   2   3   4   5   6
///     0 compute      F0  F1          B0  B0  ...
///     0 weights  U                               R
///     transfers          f0  f1  b0
///     1 compute              F0  ...
TEST(TorchSchedule, RunsWhatIsCommunicatedBesideComputation)
{
    const auto read =
        readTorchSchedule("0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
                          "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1I1,1SEND_B1,1W1\n");
    ASSERT_TRUE(read) << describe(read.error());
    const auto runs = runTorchSchedule(*read);
    ASSERT_TRUE(runs) << describe(runs.error());
    std::string text;
    for (const TorchRun &run : *runs)
        text += std::to_string(run.start) + "-" + std::to_string(run.end) + " "
            + toString(*read->ranks[static_cast<std::size_t>(run.rank)][static_cast<std::size_t>(run.field)])
            + " " + nameOf(run.lane) + "\n";
    EXPECT_EQ(text,
        "0-1 0UNSHARD weights\n1-2 0F0 compute\n2-3 0SEND_F0 transfers\n2-3 0F1 compute\n2-3 1RECV_F0 "
        "transfers\n"
        "3-4 0SEND_F1 transfers\n3-4 1F0 compute\n3-4 1RECV_F1 transfers\n4-5 1I0 compute\n5-6 0RECV_B0 "
        "transfers\n"
        "5-6 1SEND_B0 transfers\n5-6 1W0 compute\n6-8 0B0 compute\n6-7 1F1 compute\n7-8 1I1 compute\n"
        "8-9 0RECV_B1 transfers\n8-9 1SEND_B1 transfers\n8-9 1W1 compute\n9-11 0B1 compute\n"
        "11-12 0REDUCE_GRAD weights\n");
}

TEST(TorchSchedule, SaysWhereAFileIsWrong)
{
    const auto errorOf = [](const char *text) {
        const auto read = readTorchSchedule(text);
        return read ? std::string{} : read.error().where + " " + read.error().message;
    };
    EXPECT_EQ(errorOf("0F0,0X1\n"), "line:1:2 expected an action, found \"0X1\"");
    EXPECT_EQ(errorOf("0F0\n1F\n"), "line:2:1 expected an action, found \"1F\"");
    EXPECT_EQ(errorOf("0UNSHARD3\n"), "line:1:1 expected an action, found \"0UNSHARD3\"");
    EXPECT_EQ(errorOf("(0F1;3B0)B\n"), "line:1:1 expected an action, found \"(0F1;3B0)B\"");
    EXPECT_EQ(errorOf("99999999999F0\n"), "line:1:1 expected an action, found \"99999999999F0\"");
    EXPECT_EQ(errorOf(""), "line:1 expected a line for each rank, found none");
    const auto twice = computedSchedule(*readTorchSchedule("0F0\n0F0\n"));
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().message, "stage 0 runs on ranks 0 and 1");
    const auto missing = computedSchedule(*readTorchSchedule("0F0,0F1\n1F0\n"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(
        missing.error().message, "stage 1 has no forward block of micro-batch 1, and 2 micro-batches in all");
    const auto shifted = computedSchedule(*readTorchSchedule("0F0,0F1\n1F1,1F2\n"));
    ASSERT_FALSE(shifted);
    EXPECT_EQ(
        shifted.error().message, "stage 1 has no forward block of micro-batch 0, and 2 micro-batches in all");
    EXPECT_FALSE(withCommunication(*readTorchSchedule("0B0,0F0\n1F0,1B0\n")));
}

TEST(TorchSchedule, SaysWhatPyTorchHasNot)
{
    ScheduleSetting setting = settingOf(2, 2, 4, false);
    setting.laneRanks = {{0, 1}, {1, 0}};
    const auto lanes = makeSchedule(ScheduleKind::Chimera, setting);
    ASSERT_TRUE(lanes);
    const auto written = torchSchedule(*lanes);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::NotSupported);
}

} // namespace
} // namespace planloom
