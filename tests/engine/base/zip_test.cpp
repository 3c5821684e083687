#include "engine/base/zip.h"

#include "tests/engine/base/zip_for_tests.h"

#include <gtest/gtest.h>

#include <random>

using namespace planloom;
using testing_support::ZipMember;
using testing_support::zipOf;

namespace {

Result<ZipArchive> opened(const std::string &bytes)
{
    return ZipArchive::open(sourceOf(bytes), "a.zip", "pack it anew");
}

std::string contentOf(const ZipArchive &archive, std::size_t entry)
{
    const auto content = archive.content(archive.entries().at(entry), 1U << 20U);
    if (!content)
        return describe(content.error());
    return {reinterpret_cast<const char *>(content->data()), content->size()}; // bytes as text
}

/// "aaa..", deflated: one block of fixed codes, a literal and matches of 258 bytes at distance 1 (RFC 1951).
std::string deflatedRun(int matches)
{
    std::string bytes;
    unsigned buffer = 0;
    int held = 0;
    const auto put = [&](unsigned code, int width) { // codes stand with their first bit first
        for (int i = width; i-- > 0;) {
            buffer |= (code >> i & 1U) << held;
            if (++held == 8) {
                bytes += static_cast<char>(buffer);
                buffer = 0;
                held = 0;
            }
        }
    };
    put(1, 1); // the last block
    put(2, 2); // fixed codes: 01, lowest bit first
    put(0x30 + 'a', 8);
    for (int i = 0; i < matches; ++i) {
        put(0xC0 + 285 - 280, 8); // length 258
        put(0, 5); // distance 1
    }
    put(0, 7); // end
    put(0, 7);
    return bytes;
}

} // namespace

TEST(Zip, EntriesAreFoundWithPlainAndWithLongNumbers)
{
    for (const bool zip64 : {false, true}) {
        SCOPED_TRACE(zip64);
        const std::string bytes = zipOf({{"a/one", "first"}, {"two", ""}}, zip64);
        const auto archive = opened(bytes);
        ASSERT_TRUE(archive) << describe(archive.error());
        ASSERT_EQ(archive->entries().size(), 2U);
        EXPECT_EQ(archive->entries()[0].name, "a/one");
        EXPECT_EQ(contentOf(*archive, 0), "first");
        EXPECT_EQ(contentOf(*archive, 1), "");
        const auto at = archive->contentAt(archive->entries()[0]);
        ASSERT_TRUE(at);
        EXPECT_EQ(bytes.substr(*at, 5), "first");
        EXPECT_TRUE(archive->checkOverlaps());
    }
}

TEST(Zip, DeflatedContentIsUnpackedAsFarAsIsAllowed)
{
    constexpr int kMatches = 100;
    const std::string plain(1 + 258 * kMatches, 'a');
    const std::string bytes = zipOf({{"run", deflatedRun(kMatches), 8, 0, -1, -1, plain}});
    const auto archive = opened(bytes);
    ASSERT_TRUE(archive) << describe(archive.error());
    const auto content = archive->content(archive->entries()[0], plain.size());
    if (!content && content.error().message.find("zlib") != std::string::npos)
        GTEST_SKIP() << "built without zlib";
    ASSERT_TRUE(content) << describe(content.error());
    EXPECT_EQ(content->size(), plain.size());
    const auto tooMuch = archive->content(archive->entries()[0], plain.size() - 1);
    ASSERT_FALSE(tooMuch);
    EXPECT_EQ(tooMuch.error().code, ErrorCode::ResourceLimit);

    const std::string lies = zipOf({{"run", deflatedRun(kMatches), 8, 0, 1000, -1, plain}});
    const auto liar = opened(lies);
    ASSERT_TRUE(liar);
    EXPECT_FALSE(liar->content(liar->entries()[0], 1U << 20U)) << "more than it says";
    const std::string explodes = zipOf({{"run", "x", 8, 0, 1 << 30, -1, plain}});
    const auto bomb = opened(explodes);
    ASSERT_TRUE(bomb);
    EXPECT_FALSE(bomb->content(bomb->entries()[0], std::uint64_t{1} << 40U)) << "no byte makes that many";
}

TEST(Zip, WhatIsEncryptedUnknownSharedOrOutsideIsRefused)
{
    const auto refused = [](const ZipMember &member) {
        const std::string bytes = zipOf({{"plain", "sound content"}, member});
        const auto archive = opened(bytes);
        return archive && !archive->content(archive->entries()[1], 1U << 20U);
    };
    EXPECT_FALSE(refused({"sound", "abc"}));
    EXPECT_TRUE(refused({"encrypted", "abc", 0, 1}));
    EXPECT_TRUE(refused({"method", "abc", 93}));
    EXPECT_TRUE(refused({"two sizes", "abc", 0, 0, 4}));
    EXPECT_TRUE(refused({"outside", "abc", 0, 0, -1, 1 << 20}));
    EXPECT_TRUE(refused({"no header", "abc", 0, 0, -1, 3}));
    const std::string overlapping =
        zipOf({{"plain", "sound content"}, {"other", "sound content", 0, 0, -1, 0}});
    const auto shared = opened(overlapping);
    ASSERT_TRUE(shared);
    EXPECT_FALSE(shared->checkOverlaps());
}

TEST(Zip, DamageNeverPassesForContent)
{
    const std::vector<ZipMember> members{{"one", "some content"}, {"two", std::string(200, 'x')}};
    std::mt19937 random(3);
    for (const bool zip64 : {false, true}) {
        const std::string sound = zipOf(members, zip64);
        for (std::size_t length = 0; length < sound.size(); ++length) {
            const std::string bytes = sound.substr(0, length);
            const auto archive = opened(bytes);
            EXPECT_FALSE(archive) << length;
        }
        for (int i = 0; i < 5000; ++i) {
            std::string bytes = sound;
            for (unsigned k = 0; k <= random() % 3; ++k)
                bytes[random() % bytes.size()] = static_cast<char>(random());
            const auto archive = opened(bytes);
            if (!archive)
                continue;
            static_cast<void>(archive->checkOverlaps());
            for (const ZipEntry &entry : archive->entries()) {
                const auto content = archive->content(entry, 1U << 20U);
                if (content) {
                    EXPECT_EQ(zipChecksum(*content), entry.checksum);
                    EXPECT_EQ(content->size(), entry.size);
                }
            }
        }
    }
}
