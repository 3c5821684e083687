#pragma once

#include <QtCore/QAbstractTableModel>

#include <vector>

namespace planloom {

class CommandRegistry;

/// Every command with its shortcut, which can be edited here. Shortcuts that mean something else too say so.
class ShortcutModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Category, Name, Keys, Remark, ColumnCount };
    enum Role { IdRole = Qt::UserRole };

    /// @param registry  must outlive the model
    explicit ShortcutModel(CommandRegistry *registry, QObject *parent = nullptr);

    /// Takes up what has come with widgets since.
    void refresh();
    QString idAt(int row) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    bool setData(const QModelIndex &index, const QVariant &value, int role) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Line {
        QString id{};
        QString category{};
        QString name{};
    };
    CommandRegistry *m_registry;
    std::vector<Line> m_lines;
};

} // namespace planloom
