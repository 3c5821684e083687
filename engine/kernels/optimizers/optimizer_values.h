#pragma once

namespace planloom {

/// What an AdamW step computes with.
template<typename T> struct AdamW {
    T keep{}; ///< 1 - learning rate * weight decay
    T beta1{};
    T beta2{};
    T rest1{}; ///< 1 - beta1, rounded once.
    T rest2{};
    T rate{}; ///< Learning rate, corrected for the bias of m.
    T scale{}; ///< Of sqrt(v), corrected for the bias of v.
    T epsilon{};
};

} // namespace planloom
