#include "widgets/main/shortcut_model.h"

#include <QtGui/QKeySequence>

#include "widgets/main/command_registry.h"

#include <algorithm>

namespace planloom {

ShortcutModel::ShortcutModel(CommandRegistry *registry, QObject *parent)
    : QAbstractTableModel(parent)
    , m_registry(registry)
{
    connect(registry, &CommandRegistry::shortcutsChanged, this, [this] {
        if (!m_lines.empty())
            Q_EMIT dataChanged(index(0, Keys), index(rowCount() - 1, Remark));
    });
    refresh();
}

void ShortcutModel::refresh()
{
    m_registry->rescan();
    beginResetModel();
    m_lines.clear();
    for (const Command &command : m_registry->commands()) {
        if (command.action)
            m_lines.push_back({command.id, command.category,
                CommandRegistry::plainText(*command.action).section(QLatin1Char('\t'), 0, 0)});
    }
    std::stable_sort(
        m_lines.begin(), m_lines.end(), [](const Line &a, const Line &b) { return a.category < b.category; });
    endResetModel();
}

QString ShortcutModel::idAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_lines[static_cast<std::size_t>(row)].id : QString();
}

int ShortcutModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int ShortcutModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ShortcutModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    if (role == IdRole)
        return line.id;
    const QAction *action = m_registry->find(line.id);
    if (!action)
        return {};
    if (role == Qt::EditRole && index.column() == Keys)
        return QVariant::fromValue(action->shortcut());
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case Category:
        return line.category;
    case Name:
        return line.name;
    case Keys: {
        QStringList keys;
        for (const QKeySequence &sequence : action->shortcuts())
            keys.append(sequence.toString(QKeySequence::NativeText));
        return keys.join(QStringLiteral(", "));
    }
    case Remark: {
        QStringList others;
        for (const QKeySequence &sequence : action->shortcuts()) {
            for (const QString &other : m_registry->clashesOf(line.id, sequence)) {
                if (const QAction *clashing = m_registry->find(other))
                    others.append(CommandRegistry::plainText(*clashing));
            }
        }
        if (!others.isEmpty())
            return tr("⚠ also %1: neither will work").arg(others.join(QStringLiteral(", ")));
        return m_registry->isCustom(line.id) ? tr("changed") : QString();
    }
    default:
        return {};
    }
}

bool ShortcutModel::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (role != Qt::EditRole || index.column() != Keys || idAt(index.row()).isEmpty())
        return false;
    m_registry->setShortcut(idAt(index.row()), value.value<QKeySequence>());
    return true;
}

Qt::ItemFlags ShortcutModel::flags(const QModelIndex &index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (index.isValid() && index.column() == Keys)
        flags |= Qt::ItemIsEditable;
    return flags;
}

QVariant ShortcutModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Category:
        return tr("Menu or View");
    case Name:
        return tr("Command");
    case Keys:
        return tr("Shortcut");
    case Remark:
        return tr("Remark");
    default:
        return {};
    }
}

} // namespace planloom

#include "moc_shortcut_model.cpp"
