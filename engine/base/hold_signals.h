#pragma once

#include <csignal>

namespace planloom {

/// Holds all signals back from the calling thread while it lives, and for good from threads that are started
/// meanwhile: those that only help know nothing to do with a signal, and what one of them took would end the
/// program that waits for it elsewhere.
class HoldSignals
{
public:
    HoldSignals()
    {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &m_before);
    }
    HoldSignals(const HoldSignals &) = delete;
    HoldSignals &operator=(const HoldSignals &) = delete;
    ~HoldSignals() { ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr); }

private:
    sigset_t m_before{};
};

} // namespace planloom
