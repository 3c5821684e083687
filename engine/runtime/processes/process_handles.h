#pragma once

// What a supervisor holds of the operating system, given back in the end.

#include <atomic>
#include <csignal>
#include <cstddef>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace planloom {

/// A file descriptor that is closed in the end.
class Descriptor
{
public:
    explicit Descriptor(int number = -1)
        : m_number(number)
    {
    }
    Descriptor(Descriptor &&other) noexcept
        : m_number(std::exchange(other.m_number, -1))
    {
    }
    Descriptor &operator=(Descriptor &&other) noexcept
    {
        std::swap(m_number, other.m_number);
        return *this;
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() { close(); }
    int get() const { return m_number; }
    void close()
    {
        if (m_number >= 0)
            ::close(m_number);
        m_number = -1;
    }

private:
    int m_number;
};

/// Values of a type without locks, in memory that this process shares with those it forks.
template<typename T> class SharedValues
{
public:
    explicit SharedValues(std::size_t count)
        : m_bytes((count == 0 ? 1 : count) * sizeof(T))
        , m_memory(::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
    {
        static_assert(std::atomic<std::int64_t>::is_always_lock_free, "locks do not work across processes");
        for (std::size_t i = 0; valid() && i < count; ++i)
            new (data() + i) T{};
    }
    SharedValues(const SharedValues &) = delete;
    SharedValues &operator=(const SharedValues &) = delete;
    ~SharedValues()
    {
        if (valid())
            ::munmap(m_memory, m_bytes);
    }
    bool valid() const { return m_memory != MAP_FAILED; }
    T *data() const { return static_cast<T *>(m_memory); }

private:
    std::size_t m_bytes;
    void *m_memory;
};

/// Holds SIGINT and SIGTERM back and makes them readable.
class SignalReader
{
public:
    explicit SignalReader(bool wanted)
    {
        if (!wanted)
            return;
        sigemptyset(&m_watched);
        sigaddset(&m_watched, SIGINT);
        sigaddset(&m_watched, SIGTERM);
        if (::pthread_sigmask(SIG_BLOCK, &m_watched, &m_before) == 0)
            m_descriptor = ::signalfd(-1, &m_watched, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    SignalReader(const SignalReader &) = delete;
    SignalReader &operator=(const SignalReader &) = delete;
    ~SignalReader()
    {
        if (m_descriptor < 0)
            return;
        ::close(m_descriptor);
        release();
    }
    int descriptor() const { return m_descriptor; }
    /// In a forked child: signals act as before.
    void release() const
    {
        if (m_descriptor >= 0)
            ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
    }

private:
    sigset_t m_watched{};
    sigset_t m_before{};
    int m_descriptor = -1;
};

} // namespace planloom
