#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace planloom {

/// What kind of failure an `Error` is; decides the exit status of the command line.
enum class ErrorCode {
    InvalidInput, ///< A file, option or row the user gave is wrong.
    NotSupported, ///< Well formed, but beyond what this build can do.
    NotFound, ///< A named thing (file, operator, profile) does not exist.
    Conflict, ///< Rows that cannot hold together.
    ResourceLimit, ///< Memory, time or size limit reached.
    Cancelled, ///< Stopped through a stop token.
    Io, ///< The operating system refused.
    CheckFailed, ///< A verification or numeric comparison did not hold.
    Internal, ///< A bug in Planloom.
};

/// A failure as a value: what was expected and found, what would help, and where.
struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string message{}; ///< What was expected and what was found, in one sentence for the user.
    std::string advice{}; ///< What would help; may be empty.
    std::string where{}; ///< What to select: "row:5/rule", "operator:17/k", "model.onnx@1024".
    friend bool operator==(const Error &, const Error &) = default;
};

/// What stopped work returns where its stop token was asked for.
inline Error cancelled(std::string message = "stopped")
{
    return {ErrorCode::Cancelled, std::move(message)};
}

/// "where: message (advice)", for logs and the command line.
inline std::string describe(const Error &error)
{
    std::string text = error.where.empty() ? error.message : error.where + ": " + error.message;
    if (!error.advice.empty())
        text += " (" + error.advice + ")";
    return text;
}

/// Either a `T` or the `Error` that says why there is none. Members are named as in std::expected,
/// which GCC 12's C++20 lacks.
template<typename T> class [[nodiscard]] Result
{
public:
    using value_type = T;

    Result(T value)
        : m_state(std::in_place_index<0>, std::move(value))
    {
    }
    Result(Error error)
        : m_state(std::in_place_index<1>, std::move(error))
    {
    }

    bool has_value() const { return m_state.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T &value() &
    {
        assert(has_value());
        return *std::get_if<0>(&m_state);
    }
    const T &value() const &
    {
        assert(has_value());
        return *std::get_if<0>(&m_state);
    }
    T &&value() && { return std::move(value()); }

    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T &&operator*() && { return std::move(value()); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }

    Error &error() &
    {
        assert(!has_value());
        return *std::get_if<1>(&m_state);
    }
    const Error &error() const &
    {
        assert(!has_value());
        return *std::get_if<1>(&m_state);
    }
    Error &&error() && { return std::move(error()); }

    template<typename U> T value_or(U &&fallback) const &
    {
        return has_value() ? value() : static_cast<T>(std::forward<U>(fallback));
    }

private:
    std::variant<T, Error> m_state;
};

/// Success without a value, or an `Error`.
template<> class [[nodiscard]] Result<void>
{
public:
    using value_type = void;

    Result() = default;
    Result(Error error)
        : m_error(std::move(error))
    {
    }

    bool has_value() const { return !m_error.has_value(); }
    explicit operator bool() const { return has_value(); }
    void value() const { assert(has_value()); }

    Error &error() &
    {
        assert(!has_value());
        return *m_error;
    }
    const Error &error() const &
    {
        assert(!has_value());
        return *m_error;
    }
    Error &&error() && { return std::move(error()); }

private:
    std::optional<Error> m_error;
};

// A macro because only a macro can return from its caller. `TRY(const auto x, f());` declares x, or returns
// the error; `TRY_VOID(f());` does so for a Result whose value is not needed.
#define PLANLOOM_CONCAT_(a, b) a##b
#define PLANLOOM_CONCAT(a, b) PLANLOOM_CONCAT_(a, b)
#define PLANLOOM_TRY_(result, declaration, ...)                                                              \
    auto result = (__VA_ARGS__);                                                                             \
    if (!result)                                                                                             \
        return std::move(result).error();                                                                    \
    declaration = *std::move(result)
#define TRY(declaration, ...)                                                                                \
    PLANLOOM_TRY_(PLANLOOM_CONCAT(planloomTry, __COUNTER__), declaration, __VA_ARGS__)
#define TRY_VOID(...)                                                                                        \
    do {                                                                                                     \
        if (auto planloomTry = (__VA_ARGS__); !planloomTry)                                                  \
            return std::move(planloomTry).error();                                                           \
    } while (false)

} // namespace planloom
