#pragma once

#include "widgets/table/cell_editors.h"

#include <string>

class QCheckBox;

namespace planloom {

/// "batch by 2 over dp": dimension, number and mesh axis of one split; "batch by 2 keep": of a co-shard,
/// which runs over no axis, and may keep what its parts make; "sequence by 2": of slices.
class SplitCellEditor : public CellEditor
{
    Q_OBJECT
public:
    /// @param word  of the rule that the text is of: "split", "coshard" or "slice"
    SplitCellEditor(std::string word, QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    void setChoices(const ValueChoices &choices) override;
    static bool canShow(const std::string &word, const std::string &text);
    QComboBox *dimension() const { return m_dimension; }
    QComboBox *parts() const { return m_parts; }
    QComboBox *axis() const { return m_axis; } ///< Null for co-shards.
    QCheckBox *keep() const { return m_keep; } ///< Null for splits.

private:
    void fillParts();

    std::string m_word;
    QComboBox *m_dimension;
    QComboBox *m_parts;
    QComboBox *m_axis = nullptr;
    QCheckBox *m_keep = nullptr;
    ValueChoices m_choices;
};

} // namespace planloom
