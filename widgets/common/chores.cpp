#include "widgets/common/chores.h"

#include <algorithm>

namespace planloom {

Chores::Chores(QObject *parent)
    : QObject(parent)
    , m_timer(this)
{
    m_timer.setSingleShot(true);
    m_timer.setInterval(0);
    connect(&m_timer, &QTimer::timeout, this, &Chores::next);
}

void Chores::add(const char *name, std::function<void()> work)
{
    const auto same = std::find_if(
        m_waiting.begin(), m_waiting.end(), [name](const auto &piece) { return piece.first == name; });
    if (same != m_waiting.end())
        same->second = std::move(work);
    else
        m_waiting.emplace_back(name, std::move(work));
    if (!m_timer.isActive())
        m_timer.start();
}

void Chores::drop(const char *name)
{
    std::erase_if(m_waiting, [name](const auto &piece) { return piece.first == name; });
}

void Chores::finish(const char *name)
{
    const auto found = std::find_if(
        m_waiting.begin(), m_waiting.end(), [name](const auto &piece) { return piece.first == name; });
    if (found == m_waiting.end())
        return;
    const auto work = std::move(found->second);
    m_waiting.erase(found);
    work();
}

void Chores::finishAll()
{
    while (!m_waiting.empty())
        finish(m_waiting.front().first.c_str());
}

void Chores::next()
{
    if (m_waiting.empty())
        return;
    const auto work = std::move(m_waiting.front().second);
    m_waiting.pop_front();
    if (!m_waiting.empty())
        m_timer.start();
    work();
}

} // namespace planloom

#include "moc_chores.cpp"
