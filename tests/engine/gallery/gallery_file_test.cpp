#include "engine/gallery/embedded_gallery.h"
#include "engine/gallery/gallery.h"
#include "engine/gallery/gallery_find.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

constexpr const char *kHead = "entry mine\nmeaning halves\nparameter tp : count = 2 from 1 to 8 # ways\n";

TEST(GalleryFile, EveryEntryOfResourcesReadsAndSaysWhatItIs)
{
    ASSERT_EQ(builtInGallery().entries.size(), embeddedGallery().size());
    for (const EmbeddedGalleryFile &file : embeddedGallery()) {
        const auto entry = readGalleryFile(file.text, std::string(file.name));
        ASSERT_TRUE(entry) << describe(entry.error());
        EXPECT_EQ(entry->name, file.name);
        EXPECT_FALSE(entry->picture.empty()) << file.name;
        for (const GalleryParameter &parameter : entry->parameters)
            EXPECT_FALSE(parameter.meaning.empty()) << file.name << " " << parameter.name;
    }
}

TEST(GalleryFile, HasItsParts)
{
    const auto entry =
        readGalleryFile("# a note\nentry mine\nmeaning halves # of all\npaper mine\npicture\n"
                        "      [a]#1\n    [b]\n\nneeds heads\n"
                        "parameter tp : count = rest from 1 to 8   # ways\n"
                        "parameter order : word = gpipe among gpipe, 1f1b\n"
                        "rows\n    mesh tp={tp}\n"
                        "    when tp > 2 and order = 1f1b : schedule {order}\n"
                        "    otherwise : where it divides : split {with heads} : heads over tp\n",
            "mine.gallery");
    ASSERT_TRUE(entry) << describe(entry.error());
    EXPECT_EQ(entry->meaning, "halves");
    EXPECT_EQ(entry->picture, (std::vector<std::string>{"  [a]#1", "[b]"}));
    EXPECT_EQ(
        entry->needs, (std::vector<GalleryNeed>{{GalleryNeed::Kind::Dimension, DimensionMeaning::Heads}}));
    ASSERT_EQ(entry->parameters.size(), 2u);
    EXPECT_EQ(entry->parameters[0],
        (GalleryParameter{.name = "tp",
            .kind = GalleryParameterKind::Count,
            .fallback = "rest",
            .least = 1,
            .most = 8,
            .words = {},
            .meaning = "ways"}));
    EXPECT_EQ(formOf(entry->parameters[1]), "order=gpipe|1f1b");
    ASSERT_EQ(entry->lines.size(), 3u);
    EXPECT_EQ(entry->lines[1].conditions.size(), 2u);
    EXPECT_TRUE(entry->lines[2].otherwise);
    EXPECT_EQ(entry->lines[2].kind, GalleryLine::Kind::WhereItDivides);
    EXPECT_EQ(entry->lines[2].text, "split {with heads} : heads over tp");
}

TEST(GalleryFile, ErrorsSayTheLineAndTheColumn)
{
    struct Case {
        std::string text;
        const char *place;
        const char *mentions;
    };
    const std::string head = kHead;
    const Case cases[]{
        {"", "f:1:1", "names no entry"},
        {"entry Mine!\n", "f:1:7", "small letters"},
        {"entry mine\nrows\n    mesh dp=2\n", "f:3:1", "no meaning"},
        {head, "f:3:1", "makes no rows"},
        {"entry a\nentry b\n", "f:2:1", "second time"},
        {"entry a\nwhat 3\n", "f:2:1", "found 'what'"},
        {"entry a\n   meaning b\n", "f:2:4", "begins without spaces"},
        {"entry a\nneeds magic\n", "f:2:7", "found 'magic'"},
        {head + "parameter tp : count = 1\n", "f:4:11", "already"},
        {head + "parameter x : number = 1\n", "f:4:15", "found 'number'"},
        {head + "parameter x : count = many\n", "f:4:23", "a number"},
        {head + "parameter x : count = 9 from 1 to 4\n", "f:4:23", "from 1 to 4"},
        {head + "parameter x : word = a\n", "f:4:22", "choose among"},
        {head + "parameter x : word = c among a, b\n", "f:4:22", "there is no x 'c'"},
        {head + "rows\n    splitt all : batch over tp\n", "f:5:5", "splitt"},
        {head + "rows\n    split all : batch over {tq}\n", "f:5:28", "{tq}"},
        {head + "rows\n    mesh tp={tp\n", "f:5:13", "expected }"},
        {head + "rows\n    mesh tp={tp} dp=x\n", "f:5:21", ""},
        {head + "rows\n    when tq : mesh tp=2\n", "f:5:10", "no parameter 'tq'"},
        {head + "rows\n    when tp ~ 2 : mesh tp=2\n", "f:5:12", "expected =, != or >"},
        {head + "rows\n    otherwise : mesh tp=2\n", "f:5:5", "without a condition"},
        {head + "rows\n    find gold over tp\n", "f:5:10", "found 'gold"},
        {head + "rows\n    find pairs\n", "f:5:10", ""},
        {head + "rows\n    where it divides split all : batch over tp\n", "f:5:22", "expected :"},
    };
    for (const Case &one : cases) {
        SCOPED_TRACE(one.text);
        const auto entry = readGalleryFile(one.text, "f");
        ASSERT_FALSE(entry);
        EXPECT_EQ(entry.error().where, one.place) << entry.error().message;
        EXPECT_NE(entry.error().message.find(one.mentions), std::string::npos) << entry.error().message;
    }
    EXPECT_EQ(readGalleryFile(std::string(kMostGalleryFileBytes + 1, '#'), "f").error().code,
        ErrorCode::ResourceLimit);
}

TEST(GalleryFile, AnyTextIsReadOrRefusedWithAPlace)
{
    std::mt19937 random(7);
    const std::string alphabet = "{}:#=\"\\\n ,>!abtp01|()";
    for (const EmbeddedGalleryFile &file : embeddedGallery()) {
        for (int round = 0; round < 400; ++round) {
            std::string text(file.text);
            for (std::uint32_t edits = random() % 6 + 1; edits > 0; --edits) {
                const std::size_t at = random() % text.size();
                switch (random() % 4) {
                case 0:
                    text[at] = alphabet[random() % alphabet.size()];
                    break;
                case 1:
                    text.insert(at, 1, alphabet[random() % alphabet.size()]);
                    break;
                case 2:
                    text.erase(at, random() % 8 + 1);
                    break;
                default:
                    text[at] = static_cast<char>(random());
                    break;
                }
                if (text.empty())
                    text = "\n";
            }
            const auto entry = readGalleryFile(text, "f");
            if (!entry) {
                EXPECT_EQ(entry.error().where.substr(0, 2), "f:") << text;
            }
        }
    }
}

TEST(GalleryFile, FindLinesAndSetsReadWhatTheySay)
{
    const auto stages = readFindLine("stages over pp of !kind:Linear times 3 keeping versions");
    ASSERT_TRUE(stages) << describe(stages.error());
    EXPECT_EQ(stages->axis, "pp");
    EXPECT_EQ(stages->times, 3);
    EXPECT_TRUE(stages->versions);
    EXPECT_EQ(toString(stages->among), "!kind:Linear");
    EXPECT_FALSE(stages->waves);
    const auto waves = readFindLine("stages over pp times 1 for zb-v");
    ASSERT_TRUE(waves) << describe(waves.error());
    EXPECT_TRUE(waves->waves);
    EXPECT_EQ(waves->times, 2); // one stage on each rank is no wave
    EXPECT_FALSE(readFindLine("stages over pp for 1f1b")->waves);
    EXPECT_EQ(readFindLine("stages both ways over 4")->kind, FindLine::Kind::BothWays);
    EXPECT_EQ(readFindLine("recomputation")->kind, FindLine::Kind::Recomputation);
    for (const char *text :
        {"", "pairs", "pairs over", "pairs over tp times 2", "stages over pp times x", "stages over pp of",
            "stages over pp for", "stages over pp for magic", "recomputation over tp", "experts over"})
        EXPECT_FALSE(readFindLine(text)) << text;
    EXPECT_EQ(*readFoundSet("behind height"), (FoundSet{FoundSet::Kind::Behind, DimensionMeaning::Height}));
    EXPECT_FALSE(readFoundSet("with magic"));
}

} // namespace
} // namespace planloom
