#include "engine/frontend/open_dimensions.h"

#include "engine/base/words.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kUsualBatch = 8;
constexpr std::int64_t kUsualLength = 128;
constexpr std::int64_t kUsualImage = 224;
constexpr std::int64_t kUsualChannels = 3;
constexpr std::int64_t kUsualFrames = 16;

/// What a name says of a size, in the words that exporters and people use; 0 for names that say nothing.
std::int64_t sizeByName(std::string_view name)
{
    std::string lower(name);
    std::transform(
        lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    static constexpr std::pair<std::string_view, std::int64_t> kWords[] = {{"batch", kUsualBatch},
        {"seq", kUsualLength}, {"len", kUsualLength}, {"token", kUsualLength}, {"time", kUsualLength},
        {"height", kUsualImage}, {"width", kUsualImage}, {"image", kUsualImage}, {"channel", kUsualChannels},
        {"frame", kUsualFrames}, {"depth", kUsualFrames}};
    for (const auto &[word, size] : kWords) {
        if (lower.find(word) != std::string::npos)
            return size;
    }
    return lower == "n" || lower == "b" ? kUsualBatch : lower == "s" || lower == "t" ? kUsualLength : 0;
}

/// What a place among an input's dimensions says: samples first, then tokens, or channels and pixels.
std::int64_t sizeByPlace(DataType type, std::size_t rank, std::size_t axis)
{
    if (axis == 0)
        return kUsualBatch;
    if (isFloating(type) && rank >= 4)
        return axis == 1 ? kUsualChannels : rank == 5 && axis == 2 ? kUsualFrames : kUsualImage;
    return kUsualLength;
}

} // namespace

void OpenDimensions::addInput(const std::string &input, DataType type,
    const std::vector<std::vector<std::string>> &names, const std::vector<bool> &whole)
{
    for (std::size_t axis = 0; axis < names.size(); ++axis) {
        const std::string place = input + "." + std::to_string(axis);
        for (const std::string &name : names[axis]) {
            auto found = std::find_if(m_dimensions.begin(), m_dimensions.end(),
                [&name](const InputDimension &each) { return each.name == name; });
            if (found == m_dimensions.end()) {
                InputDimension made;
                made.name = name;
                made.suggested = sizeByName(name);
                if (made.suggested == 0)
                    made.suggested = sizeByPlace(type, names.size(), axis);
                found = m_dimensions.insert(m_dimensions.end(), std::move(made));
            }
            found->places.push_back(place);
            if (whole[axis])
                found->aliases.push_back(place);
        }
    }
}

void OpenDimensions::setRange(
    const std::string &name, std::optional<std::int64_t> least, std::optional<std::int64_t> most)
{
    for (InputDimension &each : m_dimensions) {
        if (each.name != name)
            continue;
        each.least = std::max<std::int64_t>(least.value_or(1), 1);
        each.most = std::max(most.value_or(kOpenEnd), each.least);
        each.suggested = std::clamp(each.suggested, each.least, each.most);
    }
}

Result<std::vector<InputDimension>> OpenDimensions::resolve(
    const std::map<std::string, std::int64_t> &asked, const std::string &where, Missing missing) const
{
    std::vector<InputDimension> dimensions = m_dimensions;
    const auto wrong = [&where](std::string message, std::string advice) {
        return Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), where};
    };
    for (const auto &[name, size] : asked) {
        const InputDimension *found = findDimension(dimensions, name);
        if (found == nullptr)
            return wrong("the model's inputs have no open dimension '" + name + "'",
                dimensions.empty()
                    ? "all sizes are fixed in the file: export it with dynamic shapes to choose them here"
                    : "its dimensions are " + namesText(dimensions));
        InputDimension &dimension = dimensions[static_cast<std::size_t>(found - dimensions.data())];
        if (size < dimension.least || size > dimension.most)
            return wrong("the size " + std::to_string(size) + " of '" + name
                    + "' lies outside of what the file allows: " + rangeText(dimension),
                "give another one, with --dim " + name + "=<size> or a row dim " + name + " = <size>");
        if (dimension.size != 0 && dimension.size != size)
            return wrong("'" + name + "' is '" + dimension.name + "', which has two sizes: "
                    + std::to_string(dimension.size) + " and " + std::to_string(size),
                "give one of them");
        dimension.size = size;
    }
    std::string open;
    std::string advice;
    std::int64_t count = 0;
    for (const InputDimension &each : dimensions) {
        if (each.size != 0)
            continue;
        ++count;
        open += (open.empty() ? "'" : "; '") + each.name + "' (" + each.places.front() + ", "
            + rangeText(each) + ")";
        advice += " --dim " + each.name + "=" + std::to_string(each.suggested);
    }
    if (count > 0 && missing == Missing::Refused)
        return wrong("the file leaves " + counted(count, "size") + " of its inputs open: " + open,
            "give a size to each, as in" + advice);
    return dimensions;
}

std::map<std::string, std::int64_t> sizesOf(const std::vector<InputDimension> &dimensions)
{
    std::map<std::string, std::int64_t> sizes;
    for (const InputDimension &each : dimensions)
        sizes[each.name] = each.size;
    return sizes;
}

} // namespace planloom
