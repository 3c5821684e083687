#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace planloom {

/// A set of choices that rows allow: anything, one of a few, or anything but a few. An exact choice is the
/// set with one member. Sets of several rows are intersected; an empty set is a conflict.
///
/// @tparam Agrees  when two values say the same; of two that agree the intersection keeps the first set's
template<typename T, typename Agrees = std::equal_to<T>> class Allowed
{
public:
    /// Anything.
    Allowed() = default;
    static Allowed only(T value) { return oneOf({std::move(value)}); }
    /// One of `values`, those in front rather than those behind. No values allow nothing.
    static Allowed oneOf(std::vector<T> values) { return Allowed(std::move(values), false); }
    static Allowed anythingBut(std::vector<T> values) { return Allowed(std::move(values), true); }

    bool isAnything() const { return m_excludes && m_values.empty(); }
    bool isEmpty() const { return !m_excludes && m_values.empty(); }
    /// True if the members are known one by one: `members()`.
    bool isListed() const { return !m_excludes; }
    /// Of a listed set, the preferred one first; of others what is excluded.
    const std::vector<T> &members() const { return m_values; }
    /// The only member; null if there are others, or none.
    const T *exact() const { return !m_excludes && m_values.size() == 1 ? &m_values.front() : nullptr; }
    /// The preferred member of a listed set; null for others and for the empty set.
    const T *preferred() const { return !m_excludes && !m_values.empty() ? &m_values.front() : nullptr; }
    bool contains(const T &value) const { return isAmong(m_values, value) != m_excludes; }

    /// What both allow, in the order of `a`.
    friend Allowed intersection(const Allowed &a, const Allowed &b)
    {
        if (a.m_excludes && b.m_excludes) {
            std::vector<T> excluded = a.m_values;
            std::copy_if(b.m_values.begin(), b.m_values.end(), std::back_inserter(excluded),
                [&](const T &value) { return !isAmong(a.m_values, value); });
            return anythingBut(std::move(excluded));
        }
        const Allowed &listed = a.m_excludes ? b : a;
        const Allowed &other = a.m_excludes ? a : b;
        std::vector<T> both;
        std::copy_if(listed.m_values.begin(), listed.m_values.end(), std::back_inserter(both),
            [&](const T &value) { return other.contains(value); });
        return oneOf(std::move(both));
    }
    friend bool operator==(const Allowed &, const Allowed &) = default;

private:
    Allowed(std::vector<T> values, bool excludes)
        : m_values(std::move(values))
        , m_excludes(excludes)
    {
    }

    static bool isAmong(const std::vector<T> &values, const T &value)
    {
        return std::any_of(
            values.begin(), values.end(), [&](const T &each) { return Agrees{}(each, value); });
    }

    std::vector<T> m_values{};
    bool m_excludes = true; ///< `m_values` are what is not allowed.
};

} // namespace planloom
