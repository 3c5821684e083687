#pragma once

#include <QtGui/QPixmap>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QScrollArea>

#include "widgets/lesson/lesson_guide.h"
#include "widgets/main/recent_list.h"
#include "widgets/main/samples.h"

class QGridLayout;
class QLabel;
class QLineEdit;
class QVBoxLayout;

namespace planloom {

class Settings;

/// A picture with a title, a few lines and a footer, to be clicked: a sample, or a session.
class StartCard : public QAbstractButton
{
    Q_OBJECT
public:
    explicit StartCard(QWidget *parent = nullptr);

    void setTexts(const QString &title, const QString &about, const QString &footer);
    /// Pictures for light and dark themes; null ones leave the place to the texts.
    void setPictures(const QPixmap &light, const QPixmap &dark);
    /// Shown instead of the footer, in the colour of warnings.
    void setWarning(const QString &text);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void enterEvent(QEnterEvent *event) override;
    void leaveEvent(QEvent *event) override;

private:
    QString m_about;
    QString m_footer;
    QString m_warning;
    QPixmap m_light;
    QPixmap m_dark;
};

/// One of the bundled samples.
class SampleCard : public StartCard
{
    Q_OBJECT
public:
    explicit SampleCard(Sample sample, QWidget *parent = nullptr);
    const Sample &sample() const { return m_sample; }

private:
    Sample m_sample;
};

/// One of the sessions that were open lately.
class RecentCard : public StartCard
{
    Q_OBJECT
public:
    explicit RecentCard(const RecentEntry &entry, QWidget *parent = nullptr);
    QString path() const { return m_path; }
    bool isMissing() const { return m_missing; }

private:
    QString m_path;
    bool m_missing = false;
};

/// One of the lessons, with how far somebody is in it.
class LessonCard : public StartCard
{
    Q_OBJECT
public:
    explicit LessonCard(const Lesson &lesson, int number, QWidget *parent = nullptr);
    const QString &command() const { return m_command; }
    void showMark(const std::optional<LessonMark> &mark);

private:
    QString m_command; ///< That begins it.
    QString m_idea;
    int m_minutes;
};

/// What the window shows before there is a model: where one was, the samples, and how to open one's own.
class StartPage : public QScrollArea
{
    Q_OBJECT
public:
    /// @param recent  may be null: then no session is shown; must outlive the page
    explicit StartPage(RecentList *recent, QWidget *parent = nullptr);

    /// Paths of the sessions shown, newest first, without missing ones.
    QStringList recentSessions() const;
    QLineEdit *specLine() const { return m_spec; }
    /// The lessons, with how far somebody is by the settings.
    void showLessons(std::shared_ptr<Settings> settings);
    void refreshLessons();

Q_SIGNALS:
    void sampleChosen(const planloom::Sample &sample);
    void lessonChosen(const QString &command); ///< The id of the command that begins it.
    void sessionChosen(const QString &path);
    /// A missing session: the person wants to say where it is now.
    void locateAsked(const QString &path);
    void openAsked();
    void exportHelpAsked();
    void specEntered(const QString &spec);

private:
    QWidget *addOpening(QWidget *column);
    void addSamples(QWidget *column);
    void refreshRecent();

    std::shared_ptr<Settings> m_settings; ///< Null until there are lessons.
    QVBoxLayout *m_lessons; ///< Where they stand.
    RecentList *m_recent;
    QWidget *m_recentPart;
    QGridLayout *m_recentGrid;
    QWidget *m_continuePart;
    QVBoxLayout *m_continueLayout;
    QLineEdit *m_spec;
};

} // namespace planloom
