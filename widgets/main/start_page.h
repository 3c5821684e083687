#pragma once

#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QScrollArea>

#include "widgets/main/samples.h"

class QLabel;

namespace planloom {

/// One sample on the start page: what it is, what it shows, on what.
class SampleCard : public QAbstractButton
{
    Q_OBJECT
public:
    explicit SampleCard(Sample sample, QWidget *parent = nullptr);
    const Sample &sample() const { return m_sample; }
    QSize sizeHint() const override { return {290, 132}; }

protected:
    void paintEvent(QPaintEvent *event) override;
    void enterEvent(QEnterEvent *event) override;
    void leaveEvent(QEvent *event) override;

private:
    Sample m_sample;
};

/// What the window shows before there is a model: samples, and how to open one's own.
class StartPage : public QScrollArea
{
    Q_OBJECT
public:
    explicit StartPage(QWidget *parent = nullptr);

    /// A line of progress or a problem below the title; empty for none.
    void setNotice(const QString &text, bool error);

Q_SIGNALS:
    void sampleChosen(const planloom::Sample &sample);
    void openAsked();
    void specEntered(const QString &spec);

private:
    QLabel *m_notice;
};

} // namespace planloom
