#pragma once

#include <QtWidgets/QWidget>

#include <string>

class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;

namespace planloom {

/// The Gallery dock: named plans, each with what it is and a line for its parameters
/// ("3d:dp=2,tp=2,pp=2,schedule=1f1b"). Choosing one fills the line in with parameters that suit the devices;
/// Enter, a double click or *Apply* replaces the rows by the plan's, as one step of the history.
///
/// Actions (added to the widget): gallery.apply.
class GalleryPanel : public QWidget
{
    Q_OBJECT
public:
    explicit GalleryPanel(QWidget *parent = nullptr);

    void setDeviceCount(int devices);
    /// A plan can be applied: a model is open.
    void setUsable(bool usable);
    void setSpec(const QString &spec);
    /// Says at the button why the plan was not applied; until another is chosen or applied. Empty takes it
    /// away.
    void setRefusal(const QString &reason);
    QString refusal() const;
    QString spec() const;
    QListWidget *list() const { return m_list; }
    QLineEdit *line() const { return m_line; }

Q_SIGNALS:
    void chosen(const QString &spec);

private:
    void fill();
    void apply();

    QListWidget *m_list;
    QLineEdit *m_line;
    QPushButton *m_apply;
    QLabel *m_refusal;
    QAction *m_action;
    int m_devices = 1;
};

/// Parameters that suit `devices` for the gallery plan `name`: "3d:dp=1,tp=2,pp=2,schedule=1f1b".
std::string gallerySpecFor(const std::string &name, int devices);

} // namespace planloom
