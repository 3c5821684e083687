#include "engine/traces/reading/kineto_reader.h"

#include "engine/traces/reading/json_scanner.h"
#include "engine/traces/reading/kineto_event.h"
#include "tests/engine/traces/reading/files_for_tests.h"

#include <gtest/gtest.h>

#include <zlib.h>

#include <random>

namespace planloom {
namespace {

using test::readText;
using test::smallKineto;

std::string packed(const std::string &text)
{
    std::string made(compressBound(text.size()) + 64, '\0');
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    std::string input = text; // zlib takes what it only reads without const
    stream.next_in = reinterpret_cast<Bytef *>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef *>(made.data());
    stream.avail_out = static_cast<uInt>(made.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    made.resize(stream.total_out);
    deflateEnd(&stream);
    return made;
}

const TraceEvent &eventNamed(const RankTrace &rank, const std::string &name)
{
    for (const TraceEvent &event : rank.events)
        if (rank.nameOfEvent(event).rfind(name, 0) == 0)
            return event;
    ADD_FAILURE() << "there is no " << name;
    return rank.events.front();
}

TEST(ReadKineto, ReadsWhatRanOnTheDevice)
{
    const auto rank = readText(smallKineto(1));
    ASSERT_TRUE(rank) << describe(rank.error());
    EXPECT_EQ(rank->rank, 1);
    EXPECT_EQ(rank->world, 2);
    EXPECT_FALSE(rank->isOnHost);
    EXPECT_TRUE(rank->remarks.empty());
    EXPECT_EQ(rank->events.size(), 4U) << "operators of the host are not what ran";
    const TraceEvent &gemm = eventNamed(*rank, "gemm");
    EXPECT_EQ(rank->nameOfEvent(gemm), "gemm_\u00e9");
    EXPECT_EQ(gemm.start, 110'125);
    EXPECT_EQ(gemm.duration, 20'000);
    EXPECT_EQ(gemm.launch, 103'250);
    EXPECT_EQ(rank->lanes[gemm.lane].name, "stream 7");
    EXPECT_EQ(eventNamed(*rank, "Memcpy").kind, TraceKind::Copy);
    const TraceEvent &step = eventNamed(*rank, "ProfilerStep");
    EXPECT_EQ(step.kind, TraceKind::Step);
    EXPECT_EQ(step.link, 4U);
    EXPECT_EQ(step.duration, 90'500);
    const TraceEvent &reduce = eventNamed(*rank, "nccl");
    EXPECT_EQ(reduce.kind, TraceKind::AllReduce);
    const TraceCollective &collective = rank->collectives[reduce.link];
    EXPECT_EQ(collective.sequence, 12);
    EXPECT_EQ(collective.inBytes, 128);
    const TraceGroup group{"0", "default_pg", {0, 1}, 2};
    EXPECT_EQ(rank->groups[collective.group], group);
}

TEST(ReadKineto, ReadsTheSameWhereverBlocksEndAndWhenPacked)
{
    // More than a block of the scanner, so that tokens lie on its ends.
    std::string text = smallKineto();
    std::string more;
    for (int i = 0; more.size() < (3U << 19U); ++i)
        more += R"({"ph": "X", "cat": "kernel", "name": "k)" + std::to_string(i % 7) + R"(", "ts": )"
            + std::to_string(200 + i) + R"(.5, "dur": 0.25, "args": {"stream": 7}},)"
            + std::string(static_cast<std::size_t>(i % 5), ' ');
    text.insert(text.find("{\"ph\""), more);
    const auto plain = readText(text);
    ASSERT_TRUE(plain) << describe(plain.error());
    EXPECT_GT(plain->events.size(), 15'000U);
    EXPECT_TRUE(plain->remarks.empty());
    EXPECT_EQ(*plain, *readText(packed(text)));
    const std::string two = packed(text.substr(0, 1000)) + packed(text.substr(1000));
    EXPECT_EQ(*plain, *readText(two)) << "members of a packed file are one text";
}

TEST(ReadKineto, TakesOutermostOperatorsWhereNothingRanOnADevice)
{
    const auto rank = readText(R"({"distributedInfo": {"rank": 2}, "traceEvents": [
      {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "tid": 1, "ts": 10, "dur": 20},
      {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "tid": 1, "ts": 12, "dur": 10},
      {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "tid": 1, "ts": 30, "dur": 5},
      {"ph": "X", "cat": "cpu_op", "name": "aten::add", "tid": 2, "ts": 12, "dur": 5},
      {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "tid": 1, "ts": 36, "dur": 5},
      {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "tid": 1, "ts": 37, "dur": 1, "args": {
       "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10, "Out msg nelems": 10,
       "Process Group Name": "3", "Process Group Ranks": [0, 2], "Group size": 2, "Seq": 5}},
      {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "tid": 1, "ts": 38, "dur": 40}]})");
    ASSERT_TRUE(rank) << describe(rank.error());
    EXPECT_TRUE(rank->isOnHost);
    EXPECT_EQ(rank->events.size(), 4U);
    const TraceEvent &reduce = eventNamed(*rank, "gloo");
    EXPECT_EQ(reduce.kind, TraceKind::AllReduce);
    const TraceCollective &said = rank->collectives[reduce.link];
    EXPECT_EQ(said.sequence, 5);
    EXPECT_EQ(said.inBytes, 40);
    EXPECT_EQ(rank->groups[said.group].ranks, (std::vector<std::int32_t>{0, 2}));
}

TEST(ReadKineto, AddsTheBaseOfAllTimes)
{
    const std::string events =
        R"("traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1.5, "dur": 2, "args": {"stream": 1}}])";
    for (const std::string &text : {"{\"baseTimeNanoseconds\": 1700000000000000000, " + events + "}",
             "{" + events + ", \"baseTimeNanoseconds\": 1700000000000000000}"}) {
        const auto rank = readText(text);
        ASSERT_TRUE(rank) << describe(rank.error());
        EXPECT_EQ(rank->events[0].start, 1'700'000'000'000'001'500);
    }
}

TEST(SampleKineto, SeesTheWholeTimeOfALargeFile)
{
    std::string text = R"({"distributedInfo": {"rank": 3}, "traceEvents": [)";
    constexpr int kEvents = 60'000;
    for (int i = 0; i < kEvents; ++i)
        text += R"({"ph": "X", "cat": "kernel", "name": "a longer name of a kernel than others", "ts": )"
            + std::to_string(i) + R"(, "dur": 1, "args": {"stream": 7, "correlation": 1}},)";
    text += "{}]}";
    TraceBytes bytes(sourceOf(text), "t.json");
    const auto sample = sampleKineto(bytes, "t.json");
    ASSERT_TRUE(sample) << describe(sample.error());
    EXPECT_EQ(sample->rank, 3);
    EXPECT_TRUE(sample->isSample);
    EXPECT_LT(sample->events.size(), kEvents / 2U);
    EXPECT_GT(sample->events.size(), 1000U);
    EXPECT_LT(sample->events.front().start, kEvents * 10);
    EXPECT_GT(sample->events.back().start, kEvents * 910) << "the last twelfth begins there";
    const std::string small = packed(text);
    TraceBytes again(sourceOf(small), "t.json.gz");
    const auto ofPacked = sampleKineto(again, "t.json.gz");
    ASSERT_TRUE(ofPacked) << describe(ofPacked.error());
    EXPECT_EQ(ofPacked->rank, 3);
}

/// A text that is refused, or read in part with a remark.
struct HostileCase {
    std::string name{};
    std::string text{};
    std::string expected{}; ///< Of the error's or the remark's sentence.
    bool isRefused = false;
};

void PrintTo(const HostileCase &each, std::ostream *stream)
{
    *stream << each.name;
}

std::string withEvent(const std::string &event)
{
    std::string text = smallKineto();
    return text.insert(text.find("{\"ph\""), event + ",");
}

std::string kernel(const std::string &fields)
{
    return R"({"ph": "X", "cat": "kernel", "name": "bad", "args": {"stream": 1}, )" + fields + "}";
}

std::vector<HostileCase> hostileCases()
{
    const std::string deep = std::string(100'000, '[');
    std::string manyLanes = R"({"traceEvents": [)";
    for (int i = 0; i < 5000; ++i)
        manyLanes += R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"stream": )"
            + std::to_string(i) + "}},";
    return {
        {"DeepNesting", withEvent(R"({"ph": "X", "cat": "kernel", "args": {"a": )" + deep), "deeper than 512",
            true},
        {"DeepNestingOnTop", deep, "deeper than 512", true},
        {"DeepNestingBehindEvents", smallKineto().insert(smallKineto().rfind("],"), ", {\"args\": " + deep),
            "deeper than 512"},
        {"HugeName",
            withEvent(R"({"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": ")"
                + std::string(9U << 20U, 'n') + "\"}"),
            "more than 4 MiB", true},
        {"CutInAnEvent", smallKineto().substr(0, smallKineto().find("\"Seq\"")), "ends in the middle"},
        {"CutInAString", smallKineto().substr(0, smallKineto().find("stream\": 20") + 3),
            "in the middle of a string"},
        {"CutPacked", packed(smallKineto()).substr(0, packed(smallKineto()).size() - 40),
            "end in the middle"},
        {"DamagedPacked", packed(smallKineto()).replace(200, 8, "........"), "damaged"},
        {"Bomb",
            packed(
                R"({"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": {"stream": 7, "x": ")"
                + std::string(64U << 20U, ' ') + "\"}}]}"),
            "more than 200 times", true},
        {"NegativeDuration", withEvent(kernel(R"("ts": 100, "dur": -5)")), "the duration is negative"},
        {"TimesOutOfRange", withEvent(kernel(R"("ts": 99999999999999999999999, "dur": 5)")), "out of range"},
        {"TimesByExponent", withEvent(kernel(R"("ts": 1e300, "dur": 5)")), "out of range"},
        {"DurationOutOfRange", withEvent(kernel(R"("ts": 100, "dur": 8000000000000000)")),
            "more than 11 days"},
        {"FarAway", withEvent(kernel(R"("ts": 1900000000000000, "dur": 1)")), "more than 11 days away"},
        {"NotANumber", withEvent(kernel(R"("ts": NaN, "dur": 5)")), "has no time"},
        {"TimesAreTexts", withEvent(kernel(R"("ts": {"a": [1]}, "dur": "soon")")), "has no time"},
        {"ManyStreams", manyLanes + "{}]}", "more than 4,096 streams"},
        {"EventsAreNoObjects", withEvent("17, \"x\", [1, [2]]"), "is no object"},
        {"MissingEvents", R"({"schemaVersion": 1, "traceName": "x"})", "expected a trace of torch.profiler",
            true},
        {"EventsAreNoArray", R"({"traceEvents": {"a": 1}})", "no kernel, operator or annotation", true},
        {"AnotherFile", "version https://git-lfs.github.com/spec/v1\n", "expected a trace of torch.profiler",
            true},
        {"Empty", "", "expected a trace of torch.profiler", true},
        {"BracketsCross", withEvent(R"({"ph": "X", "args": {"a": [1}]})"), "ends nothing that is open"},
    };
}

class HostileTrace : public testing::TestWithParam<HostileCase>
{
};

TEST_P(HostileTrace, IsRefusedOrReadInPartWithPlaceAndReason)
{
    const HostileCase &given = GetParam();
    const auto rank = readText(given.text);
    if (given.isRefused) {
        ASSERT_FALSE(rank);
        EXPECT_NE(rank.error().message.find(given.expected), std::string::npos) << describe(rank.error());
        EXPECT_EQ(rank.error().where.rfind("t.json", 0), 0U) << rank.error().where;
        EXPECT_NE(rank.error().code, ErrorCode::Internal);
        return;
    }
    if (!rank) { // nothing came before the damage
        EXPECT_NE(rank.error().message.find(given.expected), std::string::npos) << describe(rank.error());
        return;
    }
    ASSERT_FALSE(rank->remarks.empty());
    EXPECT_NE(rank->remarks[0].text.find(given.expected), std::string::npos) << rank->remarks[0].text;
    EXPECT_EQ(rank->remarks[0].where.rfind("t.json@", 0), 0U) << rank->remarks[0].where;
    EXPECT_FALSE(rank->events.empty());
    for (const TraceEvent &event : rank->events)
        EXPECT_GE(event.duration, 0);
}
INSTANTIATE_TEST_SUITE_P(
    All, HostileTrace, testing::ValuesIn(hostileCases()), [](const auto &given) { return given.param.name; });

TEST(ReadKineto, TakesTheLastOfEqualKeysAndMendsLettersThatAreNone)
{
    const auto rank = readText(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "name": "b)"
                               "\xff\xfe"
                               R"(c", "ts": 5,
        "ts": 7, "dur": 1, "args": {"stream": 1, "stream": 2}, "args": {"stream": 3}}]})");
    ASSERT_TRUE(rank) << describe(rank.error());
    EXPECT_EQ(rank->events[0].start, 7000);
    EXPECT_EQ(rank->names[0],
        "b\xef\xbf\xbd\xef\xbf\xbd"
        "c");
    EXPECT_EQ(rank->lanes[0].name, "stream 3");
}

TEST(ReadKineto, NeverBreaksOnDamagedTexts)
{
    std::mt19937 random(20261130);
    const std::string sound = smallKineto();
    const std::string soundPacked = packed(sound);
    const std::string letters = "{}[]\",:\\0123456789.eE-+NaItfu \n\x01\xff";
    int read = 0;
    for (int i = 0; i < 6000; ++i) {
        std::string text = i % 6 == 5 ? soundPacked : sound;
        const int changes = 1 + static_cast<int>(random() % 8);
        for (int change = 0; change < changes; ++change) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
            case 0:
                text[at] = letters[random() % letters.size()];
                break;
            case 1:
                text.erase(at, 1 + random() % 20);
                break;
            case 2:
                text.insert(at, text.substr(random() % text.size(), random() % 60));
                break;
            default:
                text.resize(at + 1);
            }
            if (text.empty())
                text = "{";
        }
        const auto rank = readText(text);
        if (!rank) {
            ASSERT_NE(rank.error().code, ErrorCode::Internal);
            ASSERT_FALSE(rank.error().message.empty());
            continue;
        }
        ++read;
        ASSERT_EQ(rank->laneBegin.size(), rank->lanes.size() + 1);
        for (const TraceEvent &event : rank->events) {
            ASSERT_LT(event.name, rank->names.size());
            ASSERT_LT(event.lane, rank->lanes.size());
            ASSERT_GE(event.duration, 0);
            if (isCommunication(event.kind)) {
                ASSERT_LT(event.link, rank->collectives.size());
            }
        }
        TraceBytes again(sourceOf(text), "t.json");
        [[maybe_unused]] const auto sample = sampleKineto(again, "t.json");
    }
    EXPECT_GT(read, 1000) << "most damage leaves something to read";
}

TEST(KinetoEvent, ReadsTimesToTheNanosecond)
{
    bool isOut = false;
    EXPECT_EQ(nanosecondsOf("1740461679479712.125", isOut), 1'740'461'679'479'712'125);
    EXPECT_EQ(nanosecondsOf("0.001", isOut), 1);
    EXPECT_EQ(nanosecondsOf("12", isOut), 12'000);
    EXPECT_EQ(nanosecondsOf("1.5e3", isOut), 1'500'000);
    EXPECT_EQ(nanosecondsOf("-0.5", isOut), -500);
    EXPECT_FALSE(isOut);
    EXPECT_EQ(nanosecondsOf("NaN", isOut), kNoTime);
    EXPECT_EQ(nanosecondsOf("", isOut), kNoTime);
    EXPECT_EQ(nanosecondsOf("1.2.3", isOut), kNoTime);
    EXPECT_FALSE(isOut);
    EXPECT_EQ(nanosecondsOf("9223372036854775807", isOut), kNoTime);
    EXPECT_TRUE(isOut);
    EXPECT_EQ(ranksIn("[0, 1,2 ]"), (std::vector<std::int32_t>{0, 1, 2}));
    EXPECT_TRUE(ranksIn("[0, 1, ..., 7]").empty()) << "not all are listed";
    EXPECT_TRUE(ranksIn("[-1]").empty());
}

TEST(JsonScanner, GivesTokensAndPassesByWhatIsNotWanted)
{
    const std::string text =
        R"({"a": [1, -2.5e3, true, null, NaN], "b\n": {"c": "}]\"", "d": [[[]]]}, "e": "\ud83d\ude00"})";
    TraceBytes bytes(sourceOf(text), "t.json");
    JsonScanner scanner(bytes, "t.json");
    EXPECT_EQ(scanner.next(), JsonToken::BeginObject);
    EXPECT_EQ(scanner.next(), JsonToken::Key);
    EXPECT_EQ(scanner.next(), JsonToken::BeginArray);
    EXPECT_EQ(scanner.next(), JsonToken::Number);
    EXPECT_EQ(scanner.next(), JsonToken::Number);
    EXPECT_EQ(scanner.text(), "-2.5e3");
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(scanner.next(), JsonToken::Word);
    EXPECT_EQ(scanner.next(), JsonToken::EndArray);
    EXPECT_EQ(scanner.next(), JsonToken::Key);
    EXPECT_EQ(scanner.plainText(), "b\n");
    EXPECT_TRUE(scanner.skipValue());
    EXPECT_EQ(scanner.next(), JsonToken::Key);
    EXPECT_EQ(scanner.text(), "e");
    EXPECT_EQ(scanner.next(), JsonToken::String);
    EXPECT_EQ(scanner.plainText(), "\xf0\x9f\x98\x80");
    EXPECT_EQ(scanner.next(), JsonToken::EndObject);
    EXPECT_EQ(scanner.next(), JsonToken::End);
    EXPECT_EQ(scanner.failure(), nullptr);
}

} // namespace
} // namespace planloom
