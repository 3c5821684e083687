#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace planloom {

/// A vector of plain values whose first `N` lie in the object itself: for the very many short lists of a plan
/// (a box's ranges, an instruction's buffers), which would each be a piece of the heap otherwise. Members
/// mean what those of std::vector mean; growing beyond `N` goes to the heap, and stays there.
template<typename T, std::uint32_t N> class InlineVector
{
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && N > 0);

public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = T &;
    using const_reference = const T &;
    using iterator = T *;
    using const_iterator = const T *;

    InlineVector() = default;
    InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
    InlineVector(const std::vector<T> &values) { assign(values.begin(), values.end()); }
    template<typename Iterator> InlineVector(Iterator first, Iterator last) { assign(first, last); }
    InlineVector(const InlineVector &other)
    {
        if (other.m_capacity > N)
            assign(other.begin(), other.end());
        else
            copyHere(other);
    }
    InlineVector(InlineVector &&other) noexcept { take(other); }
    ~InlineVector() { release(); }

    InlineVector &operator=(const InlineVector &other)
    {
        if (this == &other)
            return *this;
        if (m_capacity > N || other.m_capacity > N)
            assign(other.begin(), other.end());
        else
            copyHere(other);
        return *this;
    }
    InlineVector &operator=(InlineVector &&other) noexcept
    {
        if (this != &other) {
            release();
            take(other);
        }
        return *this;
    }
    InlineVector &operator=(std::initializer_list<T> values)
    {
        assign(values.begin(), values.end());
        return *this;
    }

    std::size_t size() const { return m_size; }
    bool empty() const { return m_size == 0; }
    T *data() { return m_capacity > N ? m_storage.heap : m_storage.here; }
    const T *data() const { return m_capacity > N ? m_storage.heap : m_storage.here; }
    iterator begin() { return data(); }
    iterator end() { return data() + m_size; }
    const_iterator begin() const { return data(); }
    const_iterator end() const { return data() + m_size; }
    T &operator[](std::size_t index) { return data()[index]; }
    const T &operator[](std::size_t index) const { return data()[index]; }
    T &front() { return *begin(); }
    const T &front() const { return *begin(); }
    T &back() { return *(end() - 1); }
    const T &back() const { return *(end() - 1); }

    void clear() { m_size = 0; }
    void reserve(std::size_t capacity)
    {
        if (capacity > m_capacity)
            grow(static_cast<std::uint32_t>(std::max<std::size_t>(capacity, std::size_t{m_capacity} * 2)));
    }
    void resize(std::size_t size, const T &value = T{})
    {
        reserve(size);
        if (size > m_size)
            std::fill(end(), data() + size, value);
        m_size = static_cast<std::uint32_t>(size);
    }
    /// [first, last) must not lie in this vector.
    template<typename Iterator> void assign(Iterator first, Iterator last)
    {
        const auto count = static_cast<std::size_t>(std::distance(first, last));
        reserve(count);
        std::copy(first, last, data());
        m_size = static_cast<std::uint32_t>(count);
    }
    void push_back(const T &value)
    {
        const T copy = value; // it may lie in here
        reserve(std::size_t{m_size} + 1);
        data()[m_size++] = copy;
    }
    iterator insert(const_iterator at, const T &value)
    {
        const std::ptrdiff_t index = at - begin();
        push_back(value);
        std::rotate(begin() + index, end() - 1, end());
        return begin() + index;
    }
    /// [first, last) must not lie in this vector.
    template<typename Iterator> iterator insert(const_iterator at, Iterator first, Iterator last)
    {
        const std::ptrdiff_t index = at - begin();
        const auto count = static_cast<std::size_t>(std::distance(first, last));
        reserve(m_size + count);
        std::copy_backward(begin() + index, end(), end() + count);
        std::copy(first, last, begin() + index);
        m_size += static_cast<std::uint32_t>(count);
        return begin() + index;
    }
    iterator erase(const_iterator at) { return erase(at, at + 1); }
    iterator erase(const_iterator first, const_iterator last)
    {
        T *const to = begin() + (first - begin());
        std::copy(last, const_iterator(end()), to);
        m_size -= static_cast<std::uint32_t>(last - first);
        return to;
    }
    void pop_back() { --m_size; }

    friend bool operator==(const InlineVector &a, const InlineVector &b)
    {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }
    friend auto operator<=>(const InlineVector &a, const InlineVector &b)
    {
        return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    union Storage {
        Storage()
            : heap(nullptr)
        {
        }
        T *heap;
        T here[N];
    };

    void grow(std::uint32_t capacity)
    {
        T *const heap = new T[capacity];
        std::copy(begin(), end(), heap);
        release();
        m_storage.heap = heap;
        m_capacity = capacity;
    }
    void release()
    {
        if (m_capacity > N)
            delete[] m_storage.heap;
        m_capacity = N;
    }
    void take(InlineVector &other)
    {
        m_capacity = other.m_capacity;
        copyHere(other); // the pointer to the heap, too
        other.m_size = 0;
        other.m_capacity = N;
    }
    /// All of the storage, whatever its use: moves of a size that is known are instructions, not calls.
    void copyHere(const InlineVector &other)
    {
        m_size = other.m_size;
        std::memcpy(
            static_cast<void *>(&m_storage), static_cast<const void *>(&other.m_storage), sizeof(Storage));
    }

    std::uint32_t m_size = 0;
    std::uint32_t m_capacity = N;
    Storage m_storage{};
};

} // namespace planloom
