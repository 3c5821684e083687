#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace planloom {

/// A vector whose copies share their values until one of them is changed: for long lists that many hold and
/// few write, such as one curve of a whole class of devices. Each copy may be used on a thread of its own.
template<typename T> class SharedVector
{
public:
    using value_type = T;
    using const_iterator = typename std::vector<T>::const_iterator;

    SharedVector() = default;
    SharedVector(std::vector<T> values)
        : m_values(values.empty() ? nullptr : std::make_shared<std::vector<T>>(std::move(values)))
    {
    }
    SharedVector(std::initializer_list<T> values)
        : SharedVector(std::vector<T>(values))
    {
    }

    operator const std::vector<T> &() const { return values(); }
    const std::vector<T> &values() const
    {
        static const std::vector<T> none;
        return m_values ? *m_values : none;
    }
    bool empty() const { return !m_values || m_values->empty(); }
    std::size_t size() const { return m_values ? m_values->size() : 0; }
    const_iterator begin() const { return values().begin(); }
    const_iterator end() const { return values().end(); }
    const T &operator[](std::size_t index) const { return (*m_values)[index]; }
    const T &front() const { return m_values->front(); }
    const T &back() const { return m_values->back(); }

    /// Whether both hold the very same values, not only equal ones. O(1)
    bool sharesWith(const SharedVector &other) const { return m_values == other.m_values; }

    void push_back(T value) { edit().push_back(std::move(value)); }

    /// The values, to be changed: a copy of their own where others hold them too.
    std::vector<T> &edit()
    {
        if (!m_values)
            m_values = std::make_shared<std::vector<T>>();
        else if (m_values.use_count() > 1)
            m_values = std::make_shared<std::vector<T>>(*m_values);
        return *m_values;
    }

    friend bool operator==(const SharedVector &a, const SharedVector &b)
    {
        return a.m_values == b.m_values || a.values() == b.values();
    }

private:
    std::shared_ptr<std::vector<T>> m_values;
};

} // namespace planloom
