#pragma once

#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QWidget>

#include "engine/design/explain/gallery_effect.h"

#include <memory>
#include <string>

class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QScrollArea;

namespace planloom {

class GalleryForm;

/// The Gallery dock: named plans, each with what it is, a form for its parameters, and a line that says both
/// ("3d:dp=2,tp=2,pp=2,schedule=1f1b"). Choosing one fills them in with parameters that suit the devices, and
/// shows what the plan would do: step, memory, and what it would not cut and why; or why it does not fit.
/// Enter, a double click or *Apply* replaces the rows by the plan's, as one step of the history. Of a plan
/// whose replicas would compute more than half of the model alike it asks first.
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
    /// What the plan of the line would do, beside `now`, the summary of the plan that stands (null if none
    /// does).
    void setEffect(const Result<GalleryEffect> &effect, const TimelineSummary *now);
    QString effect() const; ///< As shown.
    /// Another plan stands: what is shown is compared with it.
    void setNow(const TimelineSummary *now);
    /// What was said is of another model or other devices: it goes, and is asked for again.
    void ask();
    /// The question whether a plan of copies shall be applied; null while there is none.
    QMessageBox *question() const { return m_question; }
    GalleryForm *form() const { return m_form; }
    QString spec() const;
    QListWidget *list() const { return m_list; }
    QLineEdit *line() const { return m_line; }

Q_SIGNALS:
    void chosen(const QString &spec);
    /// The effect of a plan is of interest: it is chosen, or its parameters have changed.
    void asked(const QString &spec);

private:
    void fill();
    void apply();
    void askAboutCopies();

    QListWidget *m_list;
    QLineEdit *m_line;
    QPushButton *m_apply;
    QLabel *m_refusal;
    QLabel *m_effect;
    GalleryForm *m_form;
    QScrollArea *m_details;
    Gallery m_gallery{};
    QTimer m_askTimer; ///< What is typed fast is asked for once.
    QAction *m_action;
    int m_devices = 1;
    std::shared_ptr<const Result<GalleryEffect>> m_known; ///< Of the plan of the line; null until it is.
    QString m_copied{}; ///< Of the plan of the line, where most of its work is copied: how much, and why.
    QPointer<QMessageBox> m_question{};
};

/// Parameters that suit `devices` for the gallery plan `name`: "3d:dp=1,tp=2,pp=2,schedule=1f1b".
std::string gallerySpecFor(const std::string &name, int devices);

} // namespace planloom
