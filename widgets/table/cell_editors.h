#pragma once

#include <QtWidgets/QWidget>

#include "widgets/table/row_cells.h"
#include "widgets/table/selector_completions.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

class QComboBox;
class QCompleter;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QSpinBox;
class QStringListModel;

namespace planloom {

/// What a cell is edited with: any number of fields that make one text. While typing the text is checked, and
/// what is wrong is said below the cell; nothing is written before the editor is left.
class CellEditor : public QWidget
{
    Q_OBJECT
public:
    using Check = std::function<std::optional<CellProblem>(const QString &text)>;

    explicit CellEditor(QWidget *parent);
    ~CellEditor() override;

    virtual QString text() const = 0;
    virtual void setText(const QString &text) = 0;
    /// What may be chosen, once known.
    virtual void setChoices(const ValueChoices &choices);

    void setCheck(Check check) { m_check = std::move(check); }
    /// What is wrong with the text now; empty if nothing is.
    const QString &problem() const { return m_problem; }
    /// Looks at the text again.
    void recheck();
    /// The grid has let go of this editor: nothing is written any more.
    void finish();
    /// Whether anything was typed or chosen since the text was set.
    bool isTouched() const { return m_touched; }

Q_SIGNALS:
    void accepted(); ///< Leave and write.
    void changed();

protected:
    /// Adds a field: its keys and focus are this editor's.
    void addField(QWidget *field, int stretch = 0);
    void touch();
    void setUntouched();
    bool focusNextPrevChild(bool next) override;
    void keyPressEvent(QKeyEvent *event) override;
    void paintEvent(QPaintEvent *event) override;

private:
    void placeHint();

    Check m_check;
    QString m_problem;
    QHBoxLayout *m_layout;
    QLabel *m_hint = nullptr;
    std::vector<QWidget *> m_fields;
    bool m_touched = false;
    bool m_finished = false;
    bool m_leaving = false; ///< Tab has been passed on.
};

/// One line of text, completed word by word, or as a whole.
class TextCellEditor : public CellEditor
{
    Q_OBJECT
public:
    /// What may follow `typed`: `typed` is the word at the cursor, or all of the text before it.
    using Suggest = std::function<std::vector<std::string>(const std::string &typed)>;

    explicit TextCellEditor(QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    void setChoices(const ValueChoices &choices) override;
    void setSuggest(Suggest suggest, bool byWord);
    /// Suggests values of a rule, once the choices are known.
    void setRule(const std::string &rule) { m_rule = rule; }
    QLineEdit *line() const { return m_line; }
    QCompleter *completer() const { return m_completer; }

private:
    void suggest(bool asked);
    void insert(const QString &completion);

    QLineEdit *m_line;
    QCompleter *m_completer;
    QStringListModel *m_list;
    Suggest m_suggest;
    std::string m_rule;
    bool m_byWord = true;
};

/// One of a few words, each with what it means.
class ChoiceCellEditor : public CellEditor
{
    Q_OBJECT
public:
    explicit ChoiceCellEditor(QWidget *parent);

    void addChoice(const QString &text, const QString &meaning);
    QString text() const override;
    void setText(const QString &text) override;
    QComboBox *box() const { return m_box; }

private:
    QComboBox *m_box;
};

/// "prefer 2": whether a row must hold or is preferred, and with which weight.
class StrengthCellEditor : public CellEditor
{
    Q_OBJECT
public:
    explicit StrengthCellEditor(QWidget *parent);

    QString text() const override; ///< Empty for a row that must hold.
    void setText(const QString &text) override;
    static bool canShow(const std::string &text);
    QComboBox *kind() const { return m_kind; }
    QSpinBox *weight() const { return m_weight; }

private:
    QComboBox *m_kind;
    QSpinBox *m_weight;
};

/// "4": a number, stepping over those that fit.
class CountCellEditor : public CellEditor
{
    Q_OBJECT
public:
    /// @param least  the smallest number  @param name  what is counted
    CountCellEditor(int least, const QString &name, QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    QSpinBox *count() const { return m_count; }

protected:
    /// The numbers to step through, ascending; empty takes all. Others can still be typed.
    void setFitting(const std::vector<std::int32_t> &fitting);

private:
    QSpinBox *m_count;
};

/// Several lines; Enter ends, Shift+Enter begins a line.
class NoteCellEditor : public CellEditor
{
    Q_OBJECT
public:
    explicit NoteCellEditor(QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    QSize sizeHint() const override;

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QPlainTextEdit *m_edit;
};

} // namespace planloom
