#include "engine/graph/annotation/annotation.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {

namespace {

std::string errorOf(
    std::string_view text, const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
{
    const auto result = parseAnnotation(text, inputs, outputs);
    if (result) {
        ADD_FAILURE() << text << " was read as " << toString(*result);
        return {};
    }
    EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
    return describe(result.error());
}

std::vector<std::string> splittableNames(const Annotation &annotation)
{
    std::vector<std::string> names;
    for (const std::int32_t i : splittableDimensions(annotation))
        names.push_back(annotation.dimensions[static_cast<std::size_t>(i)].name);
    return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST(Annotation, BindsIdentifiersToShapes)
{
    const Annotation annotation = parsed("b m k+, k+ n -> b m n", {{2, 3, 4}, {4, 5}}, {{2, 3, 5}});
    Annotation expected;
    expected.dimensions = {{"b", 2, DimensionMark::Spatial}, {"m", 3, DimensionMark::Spatial},
        {"k", 4, DimensionMark::Reduce}, {"n", 5, DimensionMark::Spatial}};
    expected.inputs = {{{{{0}}, {{1}}, {{2}}}}, {{{{2}}, {{3}}}}};
    expected.outputs = {{{{{0}}, {{1}}, {{3}}}}};
    EXPECT_EQ(annotation, expected);
}

TEST(Annotation, OfTheReferenceAreReadAndPrinted)
{
    struct Case {
        std::string text;
        std::vector<Shape> inputs;
        std::vector<Shape> outputs;
        Names splittable;
    };
    const std::vector<Case> cases{
        {"a b k+, n k+ -> a b n", {{2, 4, 8}, {16, 8}}, {{2, 4, 16}}, {"a", "b", "k", "n"}},
        {"k+, k+ -> 1", {{8}, {8}}, {{}}, {"k"}},
        {"m k+, k+ -> m", {{4, 8}, {8}}, {{4}}, {"m", "k"}},
        {"b m k+, b k+ n -> b m n", {{2, 4, 8}, {2, 8, 6}}, {{2, 4, 6}}, {"b", "m", "k", "n"}},
        {"a b k^, n k^, n -> a b n", {{2, 4, 8}, {16, 8}, {16}}, {{2, 4, 16}}, {"a", "b", "n"}},
        {"a b c^, c^, c^ -> a b c^", {{2, 6, 8}, {8}, {8}}, {{2, 6, 8}}, {"a", "b"}},
        {"a+ b+ c+ -> 1", {{2, 4, 6}}, {{}}, {"a", "b", "c"}},
        {"a b c+ -> a b 1", {{2, 4, 6}}, {{2, 4, 1}}, {"a", "b", "c"}},
        {"N+ C^, N+ -> 1", {{8, 10}, {8}}, {{}}, {"N"}},
        {"a e d^, a b^ d^, a b^ c -> a e c", {{2, 4, 8}, {2, 6, 8}, {2, 6, 10}}, {{2, 4, 10}},
            {"a", "e", "c"}},
        {"a b^ c -> a 5 c", {{2, 1, 4}}, {{2, 5, 4}}, {"a", "c"}},
        {"a 3 c, a 5 c -> a 8 c", {{2, 3, 4}, {2, 5, 4}}, {{2, 8, 4}}, {"a", "c"}},
        {"a 6 c -> a 2 c, a 4 c", {{2, 6, 4}}, {{2, 2, 4}, {2, 4, 4}}, {"a", "c"}},
        {"a b^ c, ?, a e^ c -> a e^ c", {{2, 6, 4}, {2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}}, {"a", "c"}},
        {"n iC+ 8 8, oC iC+ 3 3 -> n oC 6 6", {{2, 4, 8, 8}, {10, 4, 3, 3}}, {{2, 10, 6, 6}},
            {"n", "iC", "oC"}},
        {"n, m -> n m", {{3}, {4}}, {{3, 4}}, {"n", "m"}},
        {"? -> a", {{2, 3}}, {{4}}, {"a"}},
        {"-> n", {}, {{6}}, {"n"}},
    };
    for (const Case &c : cases) {
        SCOPED_TRACE(c.text);
        const Annotation annotation = parsed(c.text, c.inputs, c.outputs);
        EXPECT_EQ(toString(annotation), c.text);
        EXPECT_EQ(splittableNames(annotation), c.splittable);
    }
}

TEST(Annotation, EllipsisStandsForTheRemainingDimensions)
{
    EXPECT_EQ(toString(parsed("* -> *", {{2, 3, 4}}, {{2, 3, 4}})), "a b c -> a b c");
    EXPECT_EQ(toString(parsed("* a k+, k+ n -> * a n", {{2, 3, 4, 5}, {5, 6}}, {{2, 3, 4, 6}})),
        "b c a k+, k+ n -> b c a n");
    EXPECT_EQ(toString(parsed("*^ -> *^", {{2, 3}}, {{2, 3}})), "a^ b^ -> a^ b^");
    EXPECT_EQ(toString(parsed("* k+ -> *", {{5}}, {{}})), "k+ -> 1");
    EXPECT_NE(errorOf("* -> *", {{2, 3}}, {{2}}).find("'*' stands for"), std::string::npos);
}

TEST(Annotation, FreezesWhatStandsBehindTheFirstFactorEverywhere)
{
    // (2048 1024) -> (2048 16 64)
    const Annotation view = parsed("a (b 64) -> a b 64", {{2048, 1024}}, {{2048, 16, 64}});
    EXPECT_EQ(toString(view), "a (b 64) -> a b 64");
    EXPECT_EQ(view.dimensions[1].size, 16);
    EXPECT_EQ(splittableNames(view), (Names{"a", "b"}));

    const Annotation joined = parsed("b s e -> (b s) e", {{2, 3, 4}}, {{6, 4}});
    EXPECT_EQ(toString(joined), "b s^ e -> (b s^) e");
    EXPECT_EQ(splittableNames(joined), (Names{"b", "e"}));

    // A leading factor of size 1 does not count as the first.
    const Annotation one = parsed("b s e -> (b s) e", {{1, 3, 4}}, {{3, 4}});
    EXPECT_EQ(toString(one), "b s e -> (b s) e");
    EXPECT_EQ(splittableNames(one), (Names{"s", "e"}));
    EXPECT_EQ(splittableFactor(one, one.outputs[0].terms[0]), findDimension(one, "s"));

    const Annotation frozen = parsed("(8 b) -> 8 b", {{24}}, {{8, 3}});
    EXPECT_TRUE(splittableNames(frozen).empty());
    EXPECT_FALSE(splittableFactor(frozen, frozen.inputs[0].terms[0]));
}

TEST(Annotation, FreezesAnIdentifierThatStandsTwiceInOneTensor)
{
    EXPECT_EQ(toString(parsed("i i -> i", {{3, 3}}, {{3}})), "i^ i^ -> i^");
}

TEST(Annotation, OfGroupedQueriesKeepsTheGroupsSplittable)
{
    const Annotation annotation = parsed("b l^ (g r) hd^, b s^ g hd^, b s^ g vd^ -> b l^ (g r) vd^",
        {{2, 5, 12, 8}, {2, 7, 4, 8}, {2, 7, 4, 6}}, {{2, 5, 12, 6}});
    EXPECT_EQ(toString(annotation), "b l^ (g r^) hd^, b s^ g hd^, b s^ g vd^ -> b l^ (g r^) vd^");
    EXPECT_EQ(annotation.dimensions[static_cast<std::size_t>(*findDimension(annotation, "r"))].size, 3);
    EXPECT_EQ(splittableNames(annotation), (Names{"b", "g"}));
}

TEST(Annotation, ErrorsSayWhere)
{
    EXPECT_NE(errorOf("a b", {{1, 2}}, {}).find("position:3"), std::string::npos);
    EXPECT_NE(errorOf("a b+, b -> a", {{2, 3}, {3}}, {{2}}).find("different marks"), std::string::npos);
    EXPECT_NE(errorOf("a (b c -> a", {{2, 6}}, {{2}}).find("position:2"), std::string::npos);
    EXPECT_NE(errorOf("a () -> a", {{2, 6}}, {{2}}).find("empty"), std::string::npos);
    EXPECT_NE(errorOf("a, -> a", {{2}, {2}}, {{2}}).find("dimensions"), std::string::npos);
    EXPECT_NE(errorOf("a $ -> a", {{2, 3}}, {{2}}).find("'$'"), std::string::npos);
    EXPECT_NE(errorOf("8+ -> 1", {{8}}, {{}}).find("literal"), std::string::npos);
    EXPECT_NE(errorOf("a b -> a", {{2}}, {{2}}).find("2 dimensions"), std::string::npos);
    EXPECT_NE(errorOf("a, a -> a", {{2}, {3}}, {{2}}).find("'a' is 2"), std::string::npos);
    EXPECT_NE(errorOf("(a 4) -> a", {{6}}, {{6}}).find("a"), std::string::npos);
    EXPECT_NE(errorOf("(a b) -> 6", {{6}}, {{6}}).find("determines"), std::string::npos);
    EXPECT_NE(errorOf("a -> a", {{2}, {2}}, {{2}}).find("1 inputs"), std::string::npos);
    EXPECT_NE(errorOf("* * -> *", {{2}}, {{2}}).find("twice"), std::string::npos);
    EXPECT_NE(errorOf("99999999999999999999 -> 1", {{2}}, {{}}).find("too large"), std::string::npos);
    errorOf("", {}, {});
    errorOf("a -> a b -> c", {{2}}, {{2, 2}});
}

TEST(Annotation, OfTheWholeHasNothingToSplit)
{
    const std::vector<Shape> inputs{{2, 8}, {}};
    const std::vector<Shape> outputs{{8, 8, 1}};
    const Annotation annotation = wholeAnnotation(inputs, outputs);
    EXPECT_EQ(toString(annotation), "2 8, 1 -> 8 8 1");
    EXPECT_TRUE(splittableDimensions(annotation).empty());
    EXPECT_EQ(parsed(toString(annotation), inputs, outputs), annotation);
}

/// Random annotations in text: identifiers with marks, literals, compounds, opaque tensors and scalars.
TEST(Annotation, ReadsBackWhatItPrints)
{
    std::mt19937 random(11);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    for (int round = 0; round < 2000; ++round) {
        struct Identifier {
            std::string name;
            std::int64_t size;
        };
        std::vector<Identifier> identifiers;
        for (std::size_t i = 0, n = 1 + below(5); i < n; ++i) {
            static const char *const marks[] = {"", "+", "^"};
            identifiers.push_back({std::string(1, static_cast<char>('a' + i)) + "x1'" + marks[below(3)],
                1 + static_cast<std::int64_t>(below(4))});
        }
        std::vector<Shape> shapes;
        std::string text;
        const auto addTensor = [&] {
            const std::size_t kind = below(8);
            Shape shape;
            if (kind == 0) {
                text += "?";
                shape = {3, 5};
            } else if (kind == 1) {
                text += "1";
            } else {
                for (std::size_t d = 0, rank = 1 + below(3); d < rank; ++d) {
                    text += d > 0 ? " " : "";
                    const std::size_t factors = below(3) == 0 ? 2 : 1;
                    std::int64_t extent = 1;
                    text += factors > 1 ? "(" : "";
                    for (std::size_t f = 0; f < factors; ++f) {
                        text += f > 0 ? " " : "";
                        if (below(4) == 0) {
                            text += "4";
                            extent *= 4;
                        } else {
                            const Identifier &identifier = identifiers[below(identifiers.size())];
                            text += identifier.name;
                            extent *= identifier.size;
                        }
                    }
                    text += factors > 1 ? ")" : "";
                    shape.push_back(extent);
                }
            }
            shapes.push_back(shape);
        };
        // Every identifier once by itself, so that sizes are bound.
        for (const Identifier &identifier : identifiers) {
            text += (text.empty() ? "" : " ") + identifier.name;
        }
        shapes.push_back({});
        for (const Identifier &identifier : identifiers)
            shapes[0].push_back(identifier.size);
        for (std::size_t i = 0, n = below(3); i < n; ++i) {
            text += ", ";
            addTensor();
        }
        const std::size_t inputs = shapes.size();
        text += " -> ";
        addTensor();
        const std::vector<Shape> in(shapes.begin(), shapes.begin() + static_cast<std::ptrdiff_t>(inputs));
        const std::vector<Shape> out(shapes.begin() + static_cast<std::ptrdiff_t>(inputs), shapes.end());
        SCOPED_TRACE(text);
        const Annotation annotation = parsed(text, in, out);
        ASSERT_EQ(parsed(toString(annotation), in, out), annotation);
        for (const Identifier &identifier : identifiers) {
            const auto index = findDimension(annotation, identifier.name.substr(0, 4));
            ASSERT_TRUE(index);
            ASSERT_EQ(annotation.dimensions[static_cast<std::size_t>(*index)].size, identifier.size);
        }
    }
}

} // namespace planloom
