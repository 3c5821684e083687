#pragma once

#include <QtCore/QString>

class QAbstractItemModel;
class QAction;
class QTableView;
class QToolButton;
class QWidget;

namespace planloom {

/// A table of the Run dock: whole rows, nothing to edit.
QTableView *tableFor(QAbstractItemModel *model, const QString &name, QWidget *parent);

/// A button with the icon and text of its action, reached by Tab.
QToolButton *buttonFor(QAction *action, QWidget *parent);

} // namespace planloom
