#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QStyledItemDelegate>

#include "widgets/table/selector_completions.h"

#include <functional>
#include <memory>
#include <stop_token>

namespace planloom {

class CellEditor;
class TableListModel;

/// Draws the cells of the constraint table and edits each with what its column and rule want.
class TableDelegate : public QStyledItemDelegate
{
    Q_OBJECT
public:
    explicit TableDelegate(TableListModel *rows, QObject *parent = nullptr);
    ~TableDelegate() override;

    /// The model at hand, for completion; made ready off the GUI thread.
    void setModel(const ModelSnapshot &model);
    void setDeviceCount(std::int32_t count) { m_deviceCount = count; }
    const SelectorCompletionsSnapshot &completions() const { return m_completions; }
    /// Writes a cell; by default into the model, for one row.
    using Write = std::function<void(const QModelIndex &index, const QString &text)>;
    void setWrite(Write write) { m_write = std::move(write); }

Q_SIGNALS:
    void keepAsked(int row); ///< The *Keep* of a row of the solver was clicked; of the list.

public:
    QWidget *createEditor(
        QWidget *parent, const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    void destroyEditor(QWidget *editor, const QModelIndex &index) const override;
    void setEditorData(QWidget *editor, const QModelIndex &index) const override;
    void setModelData(QWidget *editor, QAbstractItemModel *model, const QModelIndex &index) const override;
    void updateEditorGeometry(
        QWidget *editor, const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    void paint(
        QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override;
    bool editorEvent(QEvent *event, QAbstractItemModel *model, const QStyleOptionViewItem &option,
        const QModelIndex &index) override;

protected:
    void initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const override;

private:
    CellEditor *valueEditor(QWidget *parent, const std::string &rule, const std::string &value) const;
    void askChoices(CellEditor *editor, const QModelIndex &index) const;

    TableListModel *m_rows;
    ModelSnapshot m_model;
    std::int32_t m_deviceCount = 1;
    SelectorCompletionsSnapshot m_completions;
    QFutureWatcher<SelectorCompletionsSnapshot> m_watcher{this};
    std::stop_source m_stop;
    mutable std::stop_source m_choicesStop;
    Write m_write;
};

} // namespace planloom
