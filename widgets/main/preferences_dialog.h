#pragma once

#include <QtWidgets/QDialog>

class QComboBox;
class QLineEdit;
class QPushButton;
class QSortFilterProxyModel;
class QTableView;

namespace planloom {

class CommandRegistry;
class ShortcutModel;
class ThemeKeeper;

/// Preferences: theme and shortcuts. Takes effect at once; there is nothing to confirm.
class PreferencesDialog : public QDialog
{
    Q_OBJECT
public:
    /// @param keeper  may be null: then the theme is not this dialog's to choose
    PreferencesDialog(CommandRegistry *registry, ThemeKeeper *keeper, QWidget *parent);

    QComboBox *themes() const { return m_themes; }
    QTableView *shortcuts() const { return m_shortcuts; }
    QLineEdit *filter() const { return m_filter; }

private:
    CommandRegistry *m_registry;
    QComboBox *m_themes = nullptr;
    ShortcutModel *m_model;
    QSortFilterProxyModel *m_proxy;
    QLineEdit *m_filter;
    QTableView *m_shortcuts;
    QPushButton *m_reset;
};

} // namespace planloom
