#pragma once

#include <QtCore/QStringList>
#include <QtWidgets/QFrame>
#include <QtWidgets/QSpinBox>

#include "engine/gesture/gesture.h"
#include "engine/gesture/place_text.h"

#include <vector>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;

namespace planloom {

/// One line on the canvas that says what a drag would do: changes show at once, Enter does it, Esc gives it
/// up. So does leaving it for somewhere else.
class DagLineEditor : public QFrame
{
    Q_OBJECT
public:
    explicit DagLineEditor(QWidget *canvas);

    /// Shows it at a place of the canvas, wholly inside, with its first field ready.
    void open(QPointF place);
    /// Elsewhere, wholly inside the canvas.
    void moveTo(QPointF place);
    /// A sentence under the line: what is wrong; empty takes it away.
    void setProblem(const QString &sentence);
    QString problem() const;

Q_SIGNALS:
    void changed();
    void accepted();
    void abandoned();
    /// Alt+O: rows in the way are to be switched off too, or no more.
    void rowsOffToggled();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;
    /// Parts of the line, left to right; the first is ready for typing.
    void setParts(const std::vector<QWidget *> &parts);
    /// A key of a field before the field has it; true if it was taken.
    virtual bool takeKey(int key);
    void setBelow(QWidget *widget); ///< Under the line.

private:
    void focusMoved(QWidget *now);

    QWidget *m_first = nullptr;
    QLabel *m_problem;
};

/// A number that steps through given counts with the arrows, and takes any by typing.
class CountBox : public QSpinBox
{
    Q_OBJECT
public:
    explicit CountBox(QWidget *parent);
    void setCounts(std::vector<std::int32_t> counts) { m_counts = std::move(counts); }
    void stepBy(int steps) override;

private:
    std::vector<std::int32_t> m_counts;
};

/// `split [k+] by [4] [ ] replicate [ ] value over [axis]`
class SplitEditor : public DagLineEditor
{
    Q_OBJECT
public:
    /// @param mesh  axes to split over; @param value  a value split is possible
    SplitEditor(const std::vector<DimensionChip> &chips, const std::vector<MeshAxis> &mesh, bool value,
        SplitKind kind, QWidget *canvas);

    std::int32_t chip() const; ///< Index into the chips given; -1 if there is none.
    std::int32_t parts() const;
    SplitKind kind() const;
    std::string axis() const; ///< Empty for none.
    void setChip(std::int32_t chip);
    /// What the arrows of the number step through.
    void setCounts(std::vector<std::int32_t> counts);

private:
    void kindChanged();

    QStringList m_labels; ///< By chip.
    QComboBox *m_dimension;
    CountBox *m_parts;
    QCheckBox *m_replicate;
    QCheckBox *m_value;
    QComboBox *m_axis;
};

/// `place on [3, h0, tp:2, 0-3, free]`
class PlaceEditor : public DagLineEditor
{
    Q_OBJECT
public:
    PlaceEditor(const QString &start, QWidget *canvas);
    QString text() const;

private:
    QLineEdit *m_text;
};

/// `before [name]` with the operators it may mean below, picked with the arrows.
class OrderEditor : public DagLineEditor
{
    Q_OBJECT
public:
    explicit OrderEditor(QWidget *canvas);
    QString text() const;
    /// Operators to choose from: their names.
    void setChoices(const QStringList &names, bool more);
    int choice() const; ///< -1 if there is none.

protected:
    bool takeKey(int key) override;

private:
    QLineEdit *m_text;
    QListWidget *m_choices;
};

/// `order [selector] before [selector]`: an order row that is there.
class OrderRowEditor : public DagLineEditor
{
    Q_OBJECT
public:
    OrderRowEditor(const QString &first, const QString &second, QWidget *canvas);
    QString first() const;
    QString second() const;

private:
    QLineEdit *m_first;
    QLineEdit *m_second;
};

/// `stage [2]`
class StageEditor : public DagLineEditor
{
    Q_OBJECT
public:
    StageEditor(std::int32_t start, QWidget *canvas);
    std::int32_t stage() const;

private:
    QSpinBox *m_stage;
};

} // namespace planloom
