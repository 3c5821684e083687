#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Devices of a stage mostly run one program in which a few numbers differ: which columns of a weight are
// theirs, whom they send to. Text is written for each device with such numbers marked; devices whose texts
// are otherwise the same share one module, in which a number that differs is an expression of the rank's own
// numbers:
//
//     device 0  x[:, <0> : <64>]    device 1  x[:, <64> : <128>]    module  x[:, 64 * rank.part : 64 *
//     rank.part + 64]

/// A number that may differ from device to device, as it stands in marked text. @param name  what it is
/// called if it does
std::string rankNumber(std::string_view name, std::int64_t value);

/// The same of a number that means nothing by itself, and is called by its name even where it is always the
/// same: a group.
std::string rankName(std::string_view name, std::int64_t value);

/// One of two texts; where devices differ, a condition on the rank's own number.
std::string rankChoice(std::string_view name, bool value, std::string_view ifSo, std::string_view ifNot);

/// The number of a mark.
std::int64_t markedNumber(std::string_view mark);

/// A module that several devices run.
struct SharedModule {
    std::string text{}; ///< Without marks.
    std::vector<std::string> names{}; ///< Of the numbers that a rank has.
    std::vector<std::int32_t> devices{}; ///< Ascending.
    std::vector<std::vector<std::int64_t>> numbers{}; ///< By device, in the order of `devices`, and name.
};

/// Gives devices whose marked texts differ in marked numbers alone one module.
/// O(length of all texts); modules come in the order of their first device.
class ModuleFolder
{
public:
    void add(std::int32_t device, std::string_view marked);
    std::vector<SharedModule> finish() const;

private:
    struct Mark {
        char kind = 0;
        std::string name{};
        std::string ifSo{};
        std::string ifNot{};
        std::vector<std::int64_t> values{}; ///< By device.
    };
    struct Form {
        std::vector<std::string> between{}; ///< Texts around the marks: one more than those.
        std::vector<Mark> marks{};
        std::vector<std::int32_t> devices{};
    };
    static SharedModule resolved(const Form &form);

    std::map<std::string, std::size_t> m_byText{};
    std::vector<Form> m_forms{};
};

} // namespace planloom
