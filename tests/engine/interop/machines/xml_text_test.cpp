#include "engine/interop/machines/xml_text.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// The place of the error, which must be one.
std::string placeOfError(const std::string &text, ErrorCode code = ErrorCode::InvalidInput)
{
    const auto read = readXml(text);
    EXPECT_FALSE(read) << text.substr(0, 100);
    if (read)
        return {};
    EXPECT_EQ(read.error().code, code) << describe(read.error());
    EXPECT_FALSE(read.error().message.empty());
    return read.error().where;
}

TEST(XmlText, ReadsElementsAttributesAndTheirLines)
{
    const auto good = readXml("\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a\n comment --><a x='1' y = "
                              "\"&lt;&amp;&quot;\">\n  <b/>\n  <c  "
                              "z=\"\"><d/></c >\n</a>\n");
    ASSERT_TRUE(good) << describe(good.error());
    ASSERT_EQ(good->size(), 4U);
    EXPECT_EQ((*good)[0].name, "a");
    EXPECT_EQ((*good)[0].line, 3);
    EXPECT_EQ((*good)[0].attributes.at("y"), "<&\"");
    EXPECT_EQ((*good)[0].children, (std::vector<std::size_t>{1, 2}));
    EXPECT_EQ((*good)[2].line, 5);
    EXPECT_EQ((*good)[2].attributes.at("z"), "");
    EXPECT_EQ((*good)[2].children, (std::vector<std::size_t>{3}));
}

TEST(XmlText, RefusesWhatIsNoDataAlone)
{
    EXPECT_EQ(placeOfError("<!DOCTYPE a [<!ENTITY e \"x\">]>\n<a/>"), "line:1:1");
    EXPECT_EQ(placeOfError("<a>\n<![CDATA[x]]></a>"), "line:2:1");
    EXPECT_EQ(placeOfError("<a>\n<?php x ?></a>"), "line:2:1");
    EXPECT_EQ(placeOfError("<a x=\"&e;\"/>"), "line:1:7");
    EXPECT_EQ(placeOfError("<a x=\"&#65;\"/>"), "line:1:7");
    EXPECT_EQ(placeOfError("<a>text</a>"), "line:1:4");
}

TEST(XmlText, RefusesWhatIsNotWellFormed)
{
    EXPECT_EQ(placeOfError(""), "line:1:1");
    EXPECT_EQ(placeOfError("<a>\n  <b>\n</a>"), "line:3:4");
    EXPECT_EQ(placeOfError("<a/>\n<b/>"), "line:2:1");
    EXPECT_EQ(placeOfError("</a>"), "line:1:4");
    EXPECT_EQ(placeOfError("<a x=\"1\" x=\"2\"/>"), "line:1:15");
    EXPECT_EQ(placeOfError("<a x=1/>"), "line:1:6");
    EXPECT_EQ(placeOfError("<a x=\"1\"y=\"2\"/>"), "line:1:10");
    EXPECT_EQ(placeOfError("<a x=\"<\"/>"), "line:1:7");
    EXPECT_EQ(placeOfError("< a/>"), "line:1:2");
    EXPECT_NE(placeOfError("<a>\n<b"), "");
    EXPECT_NE(placeOfError("<a x=\"1"), "");
    EXPECT_NE(placeOfError("<!-- a"), "");
    EXPECT_NE(placeOfError("<?xml "), "");
}

TEST(XmlText, LimitsDepthAndCounts)
{
    std::string deep;
    for (int i = 0; i < kMostXmlDepth; ++i)
        deep += "<a>";
    std::string closed = deep;
    for (int i = 0; i < kMostXmlDepth; ++i)
        closed += "</a>";
    EXPECT_TRUE(readXml(closed));
    placeOfError(deep + "<a/>", ErrorCode::ResourceLimit);
    std::string many = "<a>";
    for (std::size_t i = 0; i < kMostXmlElements; ++i)
        many += "<b/>";
    placeOfError(many + "</a>", ErrorCode::ResourceLimit);
    std::string attributes = "<a";
    for (std::size_t i = 0; i <= kMostXmlAttributes; ++i)
        attributes += " x" + std::to_string(i) + "=\"\"";
    placeOfError(attributes + "/>", ErrorCode::ResourceLimit);
}

} // namespace
} // namespace planloom
