#pragma once

#include "widgets/design/gesture_host.h"

#include <QtCore/QStringList>

#include <cstdint>
#include <vector>

namespace planloom {

/// Rows that keep a gesture from holding, and the wish (the key O while something is dragged) that they be
/// switched off with it, in one step. A canvas has one of these for the gesture under way; it shows, previews
/// and commits `proposal()`.
///
/// The wish stays while the gesture goes on: wherever it leads, the rows in the way there are found by its
/// preview and switched off once they are known, those behind them too.
class RowsInTheWay
{
public:
    /// No gesture is under way, and nothing is wished.
    void reset();
    /// The gesture would write `base`.
    void setBase(Proposal base);
    const Proposal &base() const { return m_base; }
    /// What it would write, with the rows off that are known and wished to be.
    const Proposal &proposal() const { return m_proposal; }
    /// Turns the wish on or off. @return true if the proposal is another now: it is to be previewed
    bool toggle(const GestureContext &context);
    /// The host has said more of the proposal. @return true if the proposal is another now: it is to be
    /// previewed
    bool learn(const GestureContext &context, const Preview &preview);
    bool wished() const { return m_wished; }
    /// Lines, ascending, of the table as the gesture leaves it: in its way as far as is known.
    const std::vector<std::int32_t> &lines() const { return m_lines; }

private:
    void combine(const GestureContext &context);

    Proposal m_base;
    Proposal m_proposal;
    std::vector<std::int32_t> m_lines;
    bool m_wished = false;
};

/// What a tag says below its first line of rows that are in the way: each by number and text, and what `key`
/// does about them. Empty where nothing is.
/// @param key  the key that turns the wish on and off; empty where there is none
QStringList wordsOfRowsInTheWay(const Preview &preview, const RowsInTheWay &rows, const QString &key);

} // namespace planloom
